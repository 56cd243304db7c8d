/** A full disk: ingest waits with an urgent alert, reads continue, and ingest resumes by itself. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import { createInstallation, createKey, putFile, TEST_SETTINGS } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from '../support/export-files.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { follow, readerOf } from '../support/lab.ts';
import { failingCall } from '../support/preload.ts';
import { inFolder, type RunningProgram, type RunOptions, runProgram, serve } from '../support/program.ts';
import { fillDisk } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const FULL = 'the disk is full: ingest waits for free space';
const DISK_MIB = 32;

/** Runs a program with its own small disk, in a mount namespace that ends with it; needs no rights if the kernel allows it. */
const NAMESPACE = ['--user', '--map-root-user', '--mount', 'sh', '-euc'];
const MOUNT = `mount -t tmpfs -o size=${DISK_MIB}m tmpfs "$1"`;
const COPY = `${MOUNT}; cp -a "$2/." "$1"`;
const FILL = 'dd if=/dev/zero of="$1/ballast" bs=4096 2>/dev/null || true';
const RUN = 'echo $$ > "$3"; shift 3; exec "$@"';

const canMount = spawnSync('unshare', [...NAMESPACE, MOUNT, 'sh', tmpdir()]).status === 0;
const skip = !canMount && 'no disk can be mounted here';

/** @returns an installation in `data` that `start` copies to a disk of its own; `key` reads its subscriptions */
function onDisk({ data, key, cli }: ReturnType<typeof createInstallation>, folder: string) {
  const [disk, drop] = [join(folder, 'disk'), join(folder, 'drop')];
  for (const made of [disk, drop]) mkdirSync(made);
  const pidFile = join(folder, 'pid');
  const pid = () => readFileSync(pidFile, 'utf8').trim();
  const options = ['--drop', drop, '--port', '0'];
  return {
    ...{ data, drop, key, cli, folder },
    /** Starts on the disk of its own, full if that is said. */
    start: (isFull: boolean, ...more: string[]) =>
      runProgram(['serve', ...options, '--data', disk, ...more], TEST_SETTINGS, {
        through: (program, args) => {
          const script = [COPY, ...(isFull ? [FILL] : []), RUN].join('; ');
          return ['unshare', [...NAMESPACE, script, 'sh', disk, data, pidFile, program, ...args]];
        },
      }),
    /** The disk, from outside. */
    seen: () => `/proc/${pid()}/root${disk}`,
    /** Runs a command in the {@link NAMESPACE} of the running program. */
    async within(...args: string[]): Promise<string> {
      const own = ['--user', '--mount', '--preserve-credentials', '--target', pid()];
      const through: RunOptions['through'] = (program, all) => ['nsenter', [...own, program, ...all]];
      const run = runProgram([...args, '--data', disk], {}, { through });
      assert.equal(await run.ended, 0, run.stderr());
      return run.stdout();
    },
    /** Ingests a file in `data`, and ends the program. */
    async use(content: string, end: NodeJS.Signals = 'SIGTERM'): Promise<void> {
      const run = await serve(data, ['--drop', drop], TEST_SETTINGS);
      await applied(run, drop, content);
      // Then a kill cannot leave an entry only in the log, which a full disk has no room to apply.
      const wal = join(data, 'detections.db-wal');
      await run.until('ingest to be idle', () => (statSync(wal).size === 0 ? true : undefined));
      run.kill(end);
      await run.ended;
    },
  };
}

function diskTest(title: string, use: (own: ReturnType<typeof onDisk>) => Promise<void>): void {
  test(title, { skip }, () =>
    inFolder(async (folder) => {
      using installation = createInstallation();
      await use(onDisk(installation, folder));
    }),
  );
}

const rowsOf = (count: number) => ndjson(newRows(count, { article_headline: 'x'.repeat(2000) }));

type Running = Pick<RunningProgram, 'logged'>;

async function applied(run: Running, drop: string, content: string | null, name = nextName()) {
  if (content !== null) putFile(drop, name, content);
  await run.logged(`${name} to be applied`, ({ msg, file }) => msg === 'file applied' && file === name);
}

const nextName = () => fileName('newswire', nextWindowMs());

const alertLine = (run: RunningProgram, what: 'opened' | 'closed') =>
  run.logged(`the alert ${what}`, ({ msg, alert }) => msg === `alert ${what}` && alert === 'disk full');

/** The versions of all detections on the stream, in its order. */
async function streamOf(url: string, key: string): Promise<number[]> {
  const { rows } = await follow(readerOf(url, key), `since=${formatMs(Date.now() - HOUR_MS)}`);
  return rows.map(({ version }) => version);
}

type Place = Readonly<Record<'url' | 'key' | 'drop' | 'data', string>>;

/** Drops a file on a full disk. Resolves once an alert is open and reads have succeeded. */
async function dropOnFullDisk(run: RunningProgram, { url, key, drop, data }: Place): Promise<string> {
  const before = await streamOf(url, key);
  const name = nextName();
  putFile(drop, name, rowsOf(1500));
  await run.logged('waiting', ({ msg }) => msg === FULL);
  const opened = await alertLine(run, 'opened');
  assert.equal(opened.page_worthy, true);
  await until('the alert in the list', async () => (await openAlertsOf({ data })).includes('disk full'));
  assert.equal((await fetch(`${url}/v1/health`)).status, 503);
  assert.deepEqual(await streamOf(url, key), before);
  return name;
}

diskTest('with a full disk', async ({ drop, key, cli, start, seen, within }) => {
  const other = createKey(cli, 'agency', '7001');
  await using run = start(false);
  const url = await run.url();
  await applied(run, drop, rowsOf(10));

  const ballast = join(seen(), 'ballast');
  fillDisk(ballast);
  const second = await dropOnFullDisk(run, { url, key, drop, data: seen() });
  // The waiting file is listed, whichever folder it is in.
  const status = JSON.parse(await within('ingest', 'status', '--drop', drop, '--json'));
  assert.deepEqual([status.waiting, status.waiting_files], [1, [second]]);
  fillDisk(ballast);
  await within('key', 'revoke', other.split('_')[2] ?? '', '--yes');
  const revoked = { headers: { authorization: `Bearer ${other}` } };
  assert.equal((await fetch(`${url}/v1/me`, revoked)).status, 401);
  rmSync(ballast);
  await applied(run, drop, null, second);
  await alertLine(run, 'closed');
  assert.deepEqual(await streamOf(url, key), Array(1510).fill(1));
  assert.ok(existsSync(join(drop, 'archive')));
});

diskTest('a removal without the room for it stays open, says so, and leaves room to ingest', async (own) => {
  const { drop, start, seen, within } = own;
  await using run = start(false);
  await run.url();
  await applied(run, drop, rowsOf(10));
  const { left_in_log } = JSON.parse(await within('subscription', 'remove', '7001', '--yes', '--json'));
  assert.match(left_in_log, /too little free space to write detections\.db anew: it needs twice its size/);
  assert.ok((await openAlertsOf({ data: seen() })).includes('removal incomplete'));
  await applied(run, drop, rowsOf(10));
});

diskTest('a start on a full disk, after a kill: reads work, ingest waits for space', async (own) => {
  const { data, drop, key, folder, start, seen, use } = own;
  const row = newRow();
  await use(`${ndjson([row])}${rowsOf(9)}`, 'SIGKILL');
  for (const name of ['usage', 'revocations']) rmSync(join(data, name), { force: true });
  const config = join(folder, 'wirewatch.toml');
  writeFileSync(config, '[[accounts]]\nid = "late"\nname = "Late"\n');
  await using run = start(true, '--config', config);
  const url = await run.url();
  const unwritten = run.log().flatMap((line) => line.unwritten ?? []);
  assert.deepEqual(unwritten, [
    'room to note revoked keys while the disk is full',
    'missing entries of the configuration',
  ]);
  const name = await dropOnFullDisk(run, { url, key, drop, data: seen() });
  const { read } = readerOf(url, key);
  const day = String(row.first_detected_at).slice(0, 10);
  assert.ok((await read(`/v1/detections?from=${day}&to=${day}`)).data.length > 0);
  await read(`/v1/detections/${idOf(row)}`);
  assert.equal((await read('/v1/me')).account.id, 'agency');
  const counts = 'cannot save the row counts of the daily allowance: a restart would lose them';
  await run.logged('the failed write of usage', ({ msg }) => msg === counts);

  rmSync(join(seen(), 'ballast'));
  await applied(run, drop, null, name);
  await alertLine(run, 'closed');
  await run.logged('the write of usage', ({ msg }) => msg === 'row counts can be saved again');
  assert.deepEqual(await streamOf(url, key), Array(1510).fill(1));
});

test(
  'a stop during the first start without space ends the program, also if there is space again just then',
  { skip: NO_PRELOAD },
  () =>
    inFolder(async (folder) => {
      // A new database does not get its name.
      const full = failingCall('link', 'ENOSPC', /detections\.db$/, join(folder, 'full'));
      full.begin();
      // One attempt, one wait: the stop comes within the last wait.
      const env = { ...full.settings, WIREWATCH_HASTE: '100' };
      const run = await serve(join(folder, 'data'), [], env);
      await run.logged('the full disk', ({ msg }) => msg === FULL);
      full.end();
      run.kill('SIGTERM');
      assert.equal(await Promise.race([run.ended, sleep(60_000, 'it did not stop')]), 0);
    }),
);

diskTest('on a full disk, a start that must revoke a key in an older access.db exits with 1', async (own) => {
  const { data, key, cli, start, use } = own;
  await use(rowsOf(10));
  // With SQLite's file beside it: the command that revokes the key removes that.
  const paths = ['access.db', 'access.db-shm'].map((name) => join(data, name));
  const older = paths.map((path) => readFileSync(path));
  cli(['key', 'revoke', key.split('_')[2] ?? '', '--yes']);
  for (const [at, path] of paths.entries()) writeFileSync(path, older[at] ?? '');
  const run = start(true);
  assert.equal(await run.ended, 1);
  assert.match(run.stderr(), /disk is full\. Free space and try again/);
});

diskTest('a start without space for a file of SQLite is exit code 1', async ({ data, start, use }) => {
  await use(rowsOf(10));
  for (const name of ['access.db', 'detections.db']) rmSync(join(data, `${name}-shm`));
  const run = start(true);
  assert.equal(await run.ended, 1);
  assert.match(run.stderr(), /cannot open .*access\.db: the disk is full\. Free space and try again/);
});

diskTest('no space for two databases: the damaged one is deleted for the rebuilt one', async (own) => {
  const { data, key, start, use } = own;
  await use(rowsOf(1000));
  writeFileSync(join(data, 'detections.db-damage'), 'a test says so\n');
  const sizeOf = (file: string) => statSync(join(data, file)).size;
  const names = readdirSync(data, { recursive: true, encoding: 'utf8' });
  const used = names.reduce((sum, file) => sum + sizeOf(file), 0);
  const room = Math.round(sizeOf('detections.db') * 0.8);
  writeFileSync(join(data, 'ballast'), Buffer.alloc(DISK_MIB * 1024 * 1024 - used - room));
  await using run = start(false);
  const url = await run.url();
  await run.logged('the new database', ({ msg }) => msg.startsWith('detections.db was brought up to date'));
  assert.deepEqual(await streamOf(url, key), Array(1000).fill(1));
});
