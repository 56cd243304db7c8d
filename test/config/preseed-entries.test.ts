/** Entries of accounts, subscriptions and keys in the configuration: what is accepted, and how an error is reported. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { readSecretFiles } from '../../src/config/preseed.ts';
import { ACCOUNT, folder, generated, HASH, KEY, SUBSCRIPTION, TERMS, written } from '../support/preseed.ts';
import { refusal as refused } from '../support/refusal.ts';

describe('errors in an entry are reported by its path', () => {
  const load = (text: string) => loadConfig({ flags: {}, env: {}, file: written(text), dataFolder: folder });
  const refusal = (text: string) => refused('configuration', () => load(text));

  const SECRET = `ww_live_abcdefghij23_${'a'.repeat(52)}`;
  const cases: readonly (readonly [toml: string, problem: RegExp])[] = [
    ['[[accounts]]\nid = "a"\n', /accounts\[0\]\.name: missing; expected 1 to 200 characters$/],
    ['[[accounts]]\nid = "a b"\n', /accounts\[0\]\.id: expected an account id.*found "a b"/],
    [`${ACCOUNT}${ACCOUNT}`, /accounts\[1\]\.id: acme is already used by accounts\[0\]$/],
    [`${SUBSCRIPTION}content_types = ["video"]\n`, /content_types: expected text, image.*found a list/],
    [`${SUBSCRIPTION}time-zone = "UTC"\n`, /\[0\]\.time-zone: unknown; did you mean time_zone\?$/],
    [KEY.replace(HASH, 'abc'), /keys\[0\]\.hash: expected 64 hexadecimal digits/],
    [KEY.replace(/hash.*\n/, ''), /keys\[0\]\.hash: missing/],
    [`${KEY}secret_file = "x"\n`, /keys\[0\]\.secret_file: give hash or secret_file, not both/],
    [KEY.replace(/id.*\n/, ''), /keys\[0\]\.id: missing/],
    [KEY.replace('[7001]', '[]'), /keys\[0\]\.subscriptions: expected at least one/],
    [KEY.replace(/subscriptions.*\n/, ''), /keys\[0\]\.subscriptions: missing/],
    [`${KEY}expires = 2099-01-01\n`, /keys\[0\]\.expires: expected a time/],
    ['[accounts]\nid = "a"\n', /accounts: expected entries \[\[accounts\]\], found a section$/],
    [ACCOUNT.repeat(1001), /accounts: expected at most 1000 entries, found 1001$/],
    [`[keys]\nprefix = "a"\n${KEY}`, /TOML does not allow \[keys\] and \[\[keys\]\]/],
  ];

  test('with what was expected', () => {
    for (const [toml, problem] of cases) assert.match(refusal(toml), problem);
  });

  test('a secret in the wrong place is not repeated', () => {
    for (const member of ['id', 'hash']) {
      const message = refusal(KEY.replace(new RegExp(`^${member} .*$`, 'm'), `${member} = "${SECRET}"`));
      assert.ok(!message.includes('aaaaaaa'), message);
    }
    assert.ok(!refusal(`${KEY}key = "${SECRET}"\n`).includes('aaaaaaa'));
  });

  test('all problems are reported at once', () => {
    assert.match(refusal('[[accounts]]\n[[subscriptions]]\n[[keys]]\n'), /^9 settings are invalid:\n/);
  });

  test('a secret file that holds another key, a mistyped one or the same one twice is refused', async () => {
    const { id, key } = await generated();
    const read = (toml: string) => readSecretFiles(load(toml).preseed);
    const refusalOf = (toml: string) => refused('configuration', () => read(toml));
    const path = join(folder, 'one.key');
    const entry = `[[keys]]\nsecret_file = "one.key"\n${TERMS}`;
    writeFileSync(path, key, { mode: 0o600 });
    read(`${entry}id = "${id}"\n`);
    const other = new RegExp(`contains key ${id}, but the entry names abcdefghij23`);
    assert.match(refusalOf(`${entry}id = "abcdefghij23"\n`), other);
    assert.match(refusalOf(`${entry}${entry}`), /keys\[1\]\.id: .* is already used by keys\[0\]/);
    writeFileSync(path, `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`);
    const message = refusalOf(entry);
    assert.match(message, /does not contain a complete key/);
    assert.ok(!message.includes(key.slice(-30)), message);
  });
});
