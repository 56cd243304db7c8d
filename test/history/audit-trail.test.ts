/** The audit trail: who changed which account, subscription and key, and never a hash. */
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { setAccount } from '../../src/auth/accounts.ts';
import { revokeKey, setKey } from '../../src/auth/keys.ts';
import { removeAccount } from '../../src/auth/removal.ts';
import { readTrail } from '../../src/auth/audit.ts';
import { FRAME_MAGIC } from '../../src/history/frame.ts';
import { pauseIngest } from '../../src/ingest/pause.ts';
import {
  AT_MS,
  audited,
  db,
  folder,
  HASH,
  KEY,
  OTHER_KEY,
  reopenAs,
  segment,
} from '../support/access-history.ts';

describe('the audit trail', () => {
  test('shows who did what to which account, subscription and key, and never a hash', () => {
    db.close();
    const operation = { kind: 'command', command: 'key revoke', actor: 'root', sudo_user: 'alice' };
    reopenAs(operation);
    revokeKey(db, KEY, AT_MS);
    setKey(db, OTHER_KEY, { subscriptions: [{ id: 7001, content_types: ['text'] }] });
    // The same name: no change.
    setAccount(db, 'acme', { name: 'Acme' });
    pauseIngest(db, AT_MS);
    removeAccount(db, 'acme');
    const changes = audited();
    const found = changes.map(({ actor, subject, id, change }) => [actor, subject, id, change]);
    assert.deepEqual(found, [
      [null, 'installation', null, 'added'],
      [null, 'account', 'acme', 'added'],
      [null, 'subscription', 7001, 'added'],
      [null, 'key', KEY, 'added'],
      [null, 'key', OTHER_KEY, 'added'],
      ['root', 'key', KEY, 'changed'],
      ['root', 'key', OTHER_KEY, 'changed'],
      ['root', 'ingest', null, 'changed'],
      ['root', 'key', KEY, 'removed'],
      ['root', 'key', OTHER_KEY, 'removed'],
      ['root', 'subscription', 7001, 'removed'],
      ['root', 'account', 'acme', 'removed'],
    ]);
    assert.deepEqual(changes[5]?.members, { revoked_at: { from: null, to: '2026-11-21T10:00:00Z' } });
    assert.deepEqual(changes[6]?.members, { subscriptions: { from: ['7001'], to: ['7001:text'] } });
    const { at, entry, ...rest } = changes[5] ?? { at: '', entry: 0 };
    assert.deepEqual(
      [entry, 'command' in rest && rest.command, 'sudo_user' in rest && rest.sudo_user],
      [6, 'key revoke', 'alice'],
    );
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
    assert.doesNotMatch(JSON.stringify(changes), new RegExp(HASH.toString('hex').slice(0, 8), 'i'));
  });

  test('damage at any byte, and a lost end, is an error after what can be read before it', () => {
    db.close();
    const whole = audited();
    const sound = readFileSync(segment());
    const seen = new Set<number>();
    const refuses = (content: Uint8Array, what: string) => {
      writeFileSync(segment(), content);
      const { changes: shown, damage } = readTrail(folder);
      assert.match(damage ?? '', /damaged: .*verify$/, what);
      assert.deepEqual(shown, whole.slice(0, shown.length), what);
      seen.add(shown.length);
    };
    for (let at = 0; at < sound.length; at += 1) {
      // Also each kind of a frame in place of another.
      for (const flip of [1, 2, 3, 0xff]) {
        const damaged = Buffer.from(sound);
        damaged.writeUInt8(damaged.readUInt8(at) ^ flip, at);
        refuses(damaged, `${flip} at ${at}`);
      }
    }
    assert.deepEqual([...seen].sort(), [0, 1, 2, 3, 4], 'every entry was hit, also the last');
    for (const end of [0, 10, sound.length - 10]) refuses(sound.subarray(0, end), `cut at ${end}`);
  });

  test('omits undecided entries', () => {
    const log = readFileSync(segment());
    const entry = log.indexOf(FRAME_MAGIC, 1);
    appendFileSync(segment(), log.subarray(entry, entry + 100));
    assert.equal(audited().length, 5);
  });
});
