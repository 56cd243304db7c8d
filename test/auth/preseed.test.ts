/** `[[accounts]]`, `[[subscriptions]]` and `[[keys]]` in the configuration, applied by a start. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runToEnd } from '../support/command.ts';
import { readerOf } from '../support/lab.ts';
import {
  ACCOUNT,
  folder,
  type Generated,
  generated,
  json,
  KEY,
  SUBSCRIPTION,
  TERMS,
  written,
} from '../support/preseed.ts';
import { type RunningProgram, runProgram } from '../support/program.ts';
import { inBody, postToken } from '../support/token-client.ts';

describe('a start', () => {
  const data = join(folder, 'data');
  let made: Generated;
  let filed: Generated;
  let config = '';
  let running: RunningProgram | null = null;

  before(async () => {
    made = await generated();
    filed = await generated();
    writeFileSync(join(folder, 'filed.key'), `${filed.key}\n`, { mode: 0o600 });
    const toml = made.toml.replace('ACCOUNT', 'acme').replace('"NAME"', '"Dashboard"');
    config = written(
      [
        ACCOUNT,
        'daily_rows = 500\nprint_metadata = true\n',
        SUBSCRIPTION,
        'time_zone = "europe/berlin"\ncontent_types = "image,text"\n',
        toml,
        `[[keys]]\nsecret_file = "filed.key"\n${TERMS}`,
        'expires = 2099-01-01T00:00:00Z\nallow_address = ["127.0.0.0/8", "::1"]\ndaily_rows = 7\n',
      ].join(''),
    );
  });
  after(async () => {
    running?.kill('SIGKILL');
    await running?.ended;
  });

  /** Runs the appliance during `use`. */
  async function serving<Result>(
    file: string,
    use: (run: RunningProgram, url: string) => Promise<Result>,
    on = data,
  ): Promise<Result> {
    running = runProgram(['serve', '--data', on, '--config', file, '--port', '0']);
    const url = await running.url();
    const result = await use(running, url);
    assert.equal(await running.stop(), 0, running.stderr());
    running = null;
    return result;
  }

  const statusOf = async (url: string, key: string) => (await readerOf(url, key).get('/v1/me')).status;
  const lineOf = (run: RunningProgram, msg: string) => run.log().find((line) => line.msg === msg);
  const DIFFERS = 'existing entries differ from the configuration and were not changed';
  const CREATED = 'created the entries of the configuration that were missing';

  test('creates missing entries before it listens; keys work by hash and by secret file', async () => {
    await serving(config, async (run, url) => {
      assert.equal(await statusOf(url, made.key), 200);
      assert.equal(await statusOf(url, filed.key), 200);
      const created = lineOf(run, CREATED);
      const { accounts, subscriptions, keys } = created ?? assert.fail();
      assert.deepEqual([accounts, subscriptions, keys], [['acme'], [7001], [made.id, filed.id]]);
      assert.ok(!run.stderr().includes(filed.key.slice(-52)), 'the log contains a secret');
    });
    const { created_at: _, ...account } = await json('account', 'show', 'acme', '--data', data);
    const expected = { id: 'acme', name: 'Acme News', daily_rows: 500, print_metadata: true };
    assert.deepEqual(account, { ...expected, status: 'active', suspended_at: null });
    const subscription = await json('subscription', 'show', '7001', '--data', data);
    assert.equal(subscription.time_zone, 'Europe/Berlin');
    assert.deepEqual(subscription.content_types, ['text', 'image']);
    const key = await json('key', 'show', filed.id, '--data', data);
    assert.equal(key.expires_at, '2099-01-01T00:00:00Z');
    assert.deepEqual([key.allow_addresses, key.daily_rows], [['127.0.0.0/8', '::1'], 7]);
    assert.deepEqual(key.subscriptions, [{ id: 7001, content_types: null }]);
  });

  test('a second start with the same configuration changes and logs nothing, but a readable secret file', async () => {
    chmodSync(join(folder, 'filed.key'), 0o644);
    await serving(config, async (run, url) => {
      assert.equal(lineOf(run, CREATED), undefined);
      assert.equal(lineOf(run, DIFFERS), undefined);
      const readable = lineOf(run, 'these secret files can be read by every user of this machine');
      assert.deepEqual(readable?.files, [join(folder, 'filed.key')]);
      // With the id and the secret alone, so the prefix is right, too.
      const answer = await postToken({ url }, inBody({ id: made.id, secret: made.key.slice(-52) }));
      assert.equal(answer.status, 200, await answer.text());
    });
    chmodSync(join(folder, 'filed.key'), 0o600);
  });

  test('changes, suspensions and revocations by commands stay, and are logged in one line', async () => {
    const on = ['--data', data];
    await json('account', 'set', 'acme', '--name', 'Acme', ...on);
    await json('account', 'suspend', 'acme', ...on);
    await json('subscription', 'set', '7001', '--time-zone', 'UTC', ...on);
    await json('key', 'set', filed.id, '--daily-rows', 'none', ...on);
    await json('key', 'revoke', made.id, '--yes', ...on);
    const before = await json('account', 'show', 'acme', ...on);
    await serving(config, async (run, url) => {
      assert.equal(await statusOf(url, made.key), 401);
      assert.equal(await statusOf(url, filed.key), 403);
      const [differs, ...more] = run.log().filter((line) => line.msg === DIFFERS);
      assert.deepEqual([differs?.level, more], ['warn', []]);
      assert.deepEqual(differs?.differences, [
        'account acme: name, suspended',
        'subscription 7001: time_zone',
        `key ${made.id}: revoked`,
        `key ${filed.id}: daily_rows`,
      ]);
    });
    assert.deepEqual(await json('account', 'show', 'acme', ...on), before);
    assert.equal((await json('key', 'show', made.id, ...on)).status, 'revoked');
  });

  test('a revoked key, or one removed with its account, is not revived if access.db is lost', async () => {
    const other = join(folder, 'other');
    const file = written(`${ACCOUNT}${SUBSCRIPTION}${KEY}`);
    const start = () => serving(file, async (run) => lineOf(run, DIFFERS)?.differences, other);
    assert.equal(await start(), undefined);
    const rotate = runToEnd(['key', 'rotate', 'abcdefghij23', '--data', other, '--config', file]);
    assert.equal(rotate.status, 0, rotate.stderr);
    await json('key', 'set', 'abcdefghij23', '--expires', 'none', '--data', other);
    await json('key', 'revoke', 'abcdefghij23', '--yes', '--data', other);
    rmSync(join(other, 'access.db'));
    assert.deepEqual(await start(), ['key abcdefghij23: revoked']);
    assert.equal((await json('key', 'show', 'abcdefghij23', '--data', other)).status, 'revoked');
    await json('account', 'remove', 'acme', '--yes', '--data', other);
    rmSync(join(other, 'access.db'));
    assert.deepEqual(await start(), ['key abcdefghij23: removed with its account']);
    assert.deepEqual(await json('key', 'list', '--data', other), []);
  });
});

describe('a configuration that cannot be applied is exit code 78, and creates nothing', () => {
  const cases: readonly (readonly [name: string, toml: string, problem: RegExp])[] = [
    ['an unknown account', SUBSCRIPTION, /subscriptions\[0\]\.account: account acme does not exist/],
    [
      'a secret file that is not there',
      `${ACCOUNT}${SUBSCRIPTION}[[keys]]\nsecret_file = "nowhere.key"\n${TERMS}`,
      /keys\[0\]\.secret_file: .*nowhere\.key: no such file or folder/,
    ],
  ];
  for (const [name, toml, problem] of cases) {
    test(name, async () => {
      const data = join(folder, `refused ${name}`);
      const args = ['serve', '--data', data, '--config', written(toml), '--port', '0'];
      const { status, stderr } = runToEnd(args);
      assert.equal(status, 78, stderr);
      assert.match(stderr, problem);
      if (existsSync(join(data, 'access.db')))
        assert.deepEqual(await json('account', 'list', '--data', data), []);
    });
  }
});
