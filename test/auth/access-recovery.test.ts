/**
 * Whatever happens to access.db while Wirewatch is not running: from the first request after the next start, accounts,
 * subscriptions and keys are as before, and the audit trail names who changed them.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createInstallation, createKey, type Installation, type Serving } from '../support/appliance.ts';

const REPLACED = 'access.db could not be used: its spare copy took its place';

let installation: Installation;
let revoked: string;

before(async () => {
  installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  revoked = createKey(installation.cli, 'agency', '7001');
  installation.cli(['key', 'revoke', idOfKey(revoked), '--yes']);
  installation.cli(['ingest', 'pause']);
});
after(() => installation.remove());

function idOfKey(key: string): string {
  return key.split('_')[2] ?? '';
}

/** The output of the list commands, without the last use of keys, which is in the file `usage`. */
function shown(): string[] {
  return ['account', 'subscription', 'key'].map((what) =>
    installation.cli([what, 'list', '--json']).stdout.replaceAll(/"last_used_at": .*/g, ''),
  );
}

async function statusOf(serving: Serving, key: string): Promise<number> {
  const response = await fetch(`${serving.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

describe('a start finds', () => {
  test('a damaged one', async () => {
    const before = shown();
    writeFileSync(join(installation.data, 'access.db'), 'no database '.repeat(5000));
    const serving = await installation.serve();
    try {
      assert.equal(await statusOf(serving, revoked), 401);
      assert.equal(await statusOf(serving, installation.key), 200);
      assert.ok(serving.log.some(({ msg }) => msg === REPLACED));
      assert.deepEqual(shown(), before);
      assert.notEqual(JSON.parse(installation.cli(['ingest', 'status', '--json']).stdout).paused_since, null);
    } finally {
      await serving.stop();
    }
  });
});

describe('wirewatch audit', () => {
  test('shows who did what, by which command', () => {
    const actor = userInfo().username;
    const { stdout } = installation.cli(['audit']);
    const line = stdout.split('\n').find((text) => text.includes('revoked_at none'));
    const expected = `^\\d{4}-\\S+Z  ${actor}  key revoke  key ${idOfKey(revoked)} changed: revoked_at none -> "\\d{4}-\\S+Z"$`;
    assert.match(line ?? '', new RegExp(expected));
    const lines: Record<string, unknown>[] = JSON.parse(installation.cli(['audit', '--json']).stdout);
    assert.equal(lines.length, stdout.trimEnd().split('\n').length);
    const paused = lines.find(({ subject }) => subject === 'ingest');
    assert.deepEqual([paused?.command, paused?.actor, paused?.change], ['ingest pause', actor, 'changed']);
    assert.doesNotMatch(stdout + JSON.stringify(lines), /hash|[0-9a-f]{64}/i);
  });

  test('--from and --to limit it by time', () => {
    const all = installation.cli(['audit']).stdout;
    const now = new Date().toISOString();
    assert.equal(installation.cli(['audit', '--to', now]).stdout.length <= all.length, true);
    assert.equal(installation.cli(['audit', '--from', '2000-01-01T00:00:00Z']).stdout, all);
    assert.equal(installation.cli(['audit', '--from', '2100-01-01T00:00:00Z']).stdout.trim(), '');
  });
});
