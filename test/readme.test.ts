/** Runs the README's steps to a real appliance, and the manual's quick start, exactly as written. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { OWN_FOLDERS } from '../src/drop/own-folder.ts';
import { packedText } from '../src/packed.ts';
import { onPath } from './support/command.ts';
import { without } from './support/installed.ts';
import { CHANGES, readerOf } from './support/lab.ts';
import { example, topic } from './support/manual.ts';
import { type RunningProgram, runProgram } from './support/program.ts';
import { cleanEnv } from './support/scripts.ts';
import { testFolder } from './support/test-folder.ts';
import { until } from './support/until.ts';
import { words } from './support/words.ts';

const readme = readFileSync(path.join(import.meta.dirname, '..', 'README.md'), 'utf8');

describe("README's way to a real appliance", { skip: without('curl') }, () => {
  const folder = testFolder();
  const env = cleanEnv({ PATH: onPath(path.join(folder, 'bin')), WIREWATCH_SERVER_PORT: '0' });
  const since = new Date(Date.now() - 1000).toISOString();
  /** Waits until ingest is idle, like a person who reads on. */
  const UNTIL_READ =
    'while [ -n "$(find wirewatch-data/drop -maxdepth 1 -name \'*.ndjson*\')$(ls -A wirewatch-data/drop/.taken)" ]; do sleep 0.1; done\n';
  let appliance: RunningProgram | null = null;
  let url = '';
  after(() => appliance?.stop());

  /** Runs shell lines, which must succeed. @returns their output */
  function sh(code: string): string {
    const script = code.replaceAll('http://127.0.0.1:8080', url === '' ? 'http://unknown.invalid' : url);
    const options = { cwd: folder, encoding: 'utf8', env, timeout: 60_000 } as const;
    const { status, stdout, stderr } = spawnSync('sh', ['-eu', '-c', script], options);
    assert.equal(status, 0, stderr);
    return stdout;
  }

  test('works as written', async () => {
    const blocks = [...readme.matchAll(/<!-- (run|run in the background) -->\n```sh\n([\s\S]*?)```/g)];
    const background = blocks.findIndex(([, how]) => how === 'run in the background');
    assert.ok(background > 0 && blocks.length > background + 2);
    const codes = blocks.map(([, , code = '']) => code);
    sh(codes.slice(0, background).join(''));
    assert.equal(codes[background], 'wirewatch serve\n');
    const data = path.join(folder, 'wirewatch-data');
    appliance = runProgram(['serve', '--data', data], { WIREWATCH_SERVER_PORT: '0' });
    url = await appliance.url();

    const [drop = '', calls = ''] = codes.slice(background + 1);
    sh(drop);
    const answers = sh(`${UNTIL_READ}${calls}`).replaceAll('}{', '}\n{').trim().split('\n');
    const [me, first, next, ...others] = answers;
    assert.deepEqual(others, []);
    const idsOf = (items: { id: unknown }[]) => items.map(({ id }) => id);
    assert.deepEqual(idsOf(JSON.parse(me ?? '').subscriptions), [7001]);
    assert.deepEqual(idsOf(JSON.parse(first ?? '').data), ['t.7001.9001.501']);
    assert.deepEqual(JSON.parse(next ?? '').data, []);
  });

  test('the quick start continues from there', () => {
    const { key } = JSON.parse(readFileSync(path.join(folder, 'key.json'), 'utf8'));
    const drop = example('quick-start', 'drop').replace('wirewatch ingest', `${UNTIL_READ}wirewatch ingest`);
    const stdout = sh(drop + example('quick-start', 'read').replace('ww_live_…', key));
    assert.equal(stdout.match(/ applied +20 /g)?.length, 2, stdout);
    const page = JSON.parse(stdout.slice(stdout.indexOf('{"data":')));
    assert.equal(page.data.length, 3);
    assert.match(page.next_cursor, /^[\w-]+$/);
    const [, more = ''] = topic('quick-start').match(/(curl [^\n]*cursor=NEXT_CURSOR")/) ?? [];
    const next = sh(`KEY=${key}\n${more.replace('NEXT_CURSOR', page.next_cursor)}`);
    assert.ok(JSON.parse(next).data.length >= 37);
  });

  test('the files are then those that the manual lists', async () => {
    // Row counts are written every few seconds.
    await until('the row counts', () => existsSync(path.join(folder, 'wirewatch-data', 'usage')));
    const text = topic('files');
    // On a slow machine, the first comparison of database and log is over.
    const own = /(-wal|-shm|-journal)$|^\.usage|^verified\.json$/;
    const names = readdirSync(path.join(folder, 'wirewatch-data'));
    const found = names.filter((name) => !own.test(name) && name !== 'drop').sort();
    const expected = words(`
      access.db access.db-spare address control.sock detections.db lock lock-serve lock-state log
      revocations role.json secret usage`);
    assert.deepEqual(found, expected);
    for (const name of found) assert.match(text, new RegExp(`^\\| [^|]*\`${name}/?\`[^|]* \\|`, 'm'), name);
    for (const name of OWN_FOLDERS) assert.ok(text.includes(`\`${name}/`), name);
  });

  const skip = without('python3');
  test('the sample client reads everything, and continues where it stopped', { skip }, async () => {
    const { key } = JSON.parse(readFileSync(path.join(folder, 'key.json'), 'utf8'));
    const { data } = await readerOf(url, key).read(`${CHANGES}?since=${since}&limit=1000`);
    const expected = new Set(data.map(({ id }: { id: string }) => id));
    assert.ok(data.length >= 30);
    // With a stored cursor, the client must not use since: its last value would be refused.
    for (const SINCE of [since, 'never']) {
      const { status, stderr } = spawnSync('python3', ['-c', packedText('config', 'client-py'), '--once'], {
        cwd: folder,
        encoding: 'utf8',
        env: cleanEnv({ BASE_URL: url, KEY: key, SINCE }),
        timeout: 60_000,
      });
      assert.deepEqual([status, stderr], [0, '']);
      using db = new DatabaseSync(path.join(folder, 'detections.sqlite'));
      const ids = db.prepare('SELECT id FROM detection').all();
      assert.deepEqual(new Set(ids.map(({ id }) => id)), expected);
    }
  });
});
