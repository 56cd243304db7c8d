/**
 * The manual's programs and the sample client, exactly as printed, under faults: against the real appliance behind a faulty proxy, on a full
 * disk, and killed (contract: Client procedures, Retry).
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { runToEnd } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { type Fault, startFaultyProxy } from '../support/faulty-proxy.ts';
import { example } from '../support/manual.ts';
import { inFolder } from '../support/program.ts';
import { sample } from '../support/samples.ts';

const has = (tool: string) => spawnSync(tool, ['--version']).status === 0;
const since = new Date(Date.now() - 1000).toISOString();
const ROWS = 40;

const appliance = await sharedAppliance();
const rows = Array.from({ length: ROWS }, () => newRow());
const [corrected, ...others] = rows;
await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
const windowMs = nextWindowMs();
const later = new Date(windowMs).toISOString();
await appliance.dropped(
  fileName('newswire', windowMs),
  ndjson([{ ...corrected, last_scored_at: later, strength_score: 99 }, ...others.slice(0, 3)]),
);

interface ClientRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program unchanged, except that sleeping takes no time and is recorded, one line each, in `slept`. */
const WITHOUT_SLEEP = `
import sys, time
def sleep(seconds):
    with open("slept", "a") as out: out.write(f"{seconds}\\n")
time.sleep = sleep
exec(compile(sys.argv[1], "client.py", "exec"))
`;

function startClient(folder: string, url: string, env: Record<string, string>) {
  const child = spawn('python3', ['-c', WITHOUT_SLEEP, sample('client-py'), '--once'], {
    cwd: folder,
    env: { PATH: process.env.PATH, BASE_URL: url, KEY: appliance.key, SINCE: since, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended: Promise<ClientRun> = Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]).then(([[code], stdout, stderr]) => ({ code, stdout, stderr }));
  return { child, ended };
}

async function throughFaults(
  faults: readonly Fault[],
  use: (url: string, folder: string, requests: readonly string[]) => Promise<void>,
): Promise<void> {
  const proxy = await startFaultyProxy({ target: appliance.serving().url, faults, limit: 3 });
  try {
    await inFolder((folder) => use(proxy.url, folder, proxy.requests));
  } finally {
    proxy.close();
  }
}

/** The example's copy must equal the period: the same ids with the same versions. */
async function assertWholeCopy(folder: string): Promise<void> {
  const db = new DatabaseSync(join(folder, 'detections.sqlite'));
  const stored = db.prepare('SELECT id, version, body FROM detection ORDER BY id').all();
  db.close();
  for (const { id, version, body } of stored) {
    const detection = JSON.parse(String(body));
    assert.deepEqual([detection.id, detection.version], [id, version]);
  }
  const { subscriptions } = JSON.parse(await (await appliance.get('/v1/me')).text());
  const from = subscriptions.find(({ id }: { id: number }) => id === 7001).data_starts.text;
  const to = new Date().toISOString();
  const stream = 'limit=1000&subscription_id=7001&content_type=text';
  const walk = await appliance.get(`/v1/detections?from=${from}&to=${to}&${stream}`);
  const page = JSON.parse(await walk.text());
  assert.equal(page.has_more, false);
  const current = page.data.map(({ id, version }: { id: string; version: number }) => `${id} ${version}`);
  assert.deepEqual(
    stored.map(({ id, version }) => `${id} ${version}`),
    current.sort(),
  );
}

describe('the sample client in Python', { skip: !has('python3') && 'python3 is not installed' }, () => {
  const FAULTS: readonly Fault[] = [
    { kind: 'cut body', chunked: false },
    { kind: 'cut body', chunked: true },
    { kind: 'none' },
    { kind: 'no answer' },
    { kind: 'half a body' },
    { kind: 'none' },
    { kind: 'status', status: 502 },
    { kind: 'status', status: 504 },
    { kind: 'none' },
    { kind: 'status', status: 503, retryAfter: 'Fri, 31 Dec 1999 23:59:59 GMT' },
    { kind: 'status', status: 500 },
    { kind: 'status', status: 200 },
    { kind: 'status', status: 429, retryAfter: '17' },
  ];

  test('survives every fault, doubles its waits, and gets everything once', () =>
    throughFaults(FAULTS, async (url, folder, requests) => {
      const { stdout, stderr, code } = await startClient(folder, url, {}).ended;
      assert.deepEqual([code, stdout], [0, ''], stderr);
      assert.ok(requests.length > FAULTS.length);
      const slept = readFileSync(join(folder, 'slept'), 'utf8').trim().split('\n').map(Number);
      assert.deepEqual(slept, [1, 2, 1, 2, 1, 2, 1, 2, 4, 17]);
      await assertWholeCopy(folder);
    }));

  test('killed in the middle of a page, it continues there', async () => {
    const child: { current?: ChildProcess } = {};
    const kill: Fault = { kind: 'event', run: () => child.current?.kill('SIGKILL') };
    await throughFaults([kill, { kind: 'none' }, kill, { kind: 'none' }, kill], async (url, folder) => {
      let kills = 0;
      for (;;) {
        // With a stored cursor, the client must not use since: this value would be refused.
        const run = startClient(folder, url, kills > 1 ? { SINCE: 'never' } : {});
        child.current = run.child;
        const { code, stderr, stdout } = await run.ended;
        if (code === 0) break;
        assert.deepEqual([code, stdout], [null, ''], stderr);
        kills += 1;
      }
      assert.equal(kills, 3);
      await assertWholeCopy(folder);
    });
  });

  test("an error that must not be repeated ends it, with the service's reason", () =>
    throughFaults([], async (url, folder, requests) => {
      const { code, stderr } = await startClient(folder, url, { KEY: 'nonsense' }).ended;
      assert.equal(code, 1);
      assert.match(stderr, /"status":401/);
      assert.equal(requests.length, 1);
    }));
});

describe("the manual's calls", { skip: !has('curl') && 'curl is not installed' }, () => {
  test('a token is requested again after a 502', () =>
    throughFaults([{ kind: 'status', status: 502 }], async (url, folder, requests) => {
      const script = example('tokens', 'token-in-body').replaceAll('http://127.0.0.1:8080', url);
      const env = { PATH: process.env.PATH, KEY: appliance.key };
      const child = spawn('sh', ['-eu', '-c', script], { cwd: folder, env });
      const [stdout] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
      assert.equal(JSON.parse(stdout).key.id, appliance.key.split('_')[2]);
      assert.deepEqual(requests, ['/oauth/token', '/oauth/token', '/v1/me']);
    }));
});

describe("the manual's writers", () => {
  /** The last finished window, and the next one, which may end before the example reads the clock. */
  const [last, next] = [1, 0].map((before) =>
    formatWindowStart((Math.floor(Date.now() / WINDOW_MS) - before) * WINDOW_MS),
  );
  for (const [name, command, drafts] of [
    ['shell-writer', 'sh', ['.newswire.20261120T1010Z.ndjson.gz']],
    ['csv-writer', 'sh', ['newswire.20261120T1020Z.csv.part']],
    ['python-writer', 'python3', [`.imagewire.${last}.ndjson.gz`, `.imagewire.${next}.ndjson.gz`]],
  ] as const) {
    const needed = command === 'sh' ? 'gzip' : command;
    const write = (folder: string) => {
      const code = example('export-format', name);
      const drop = join(folder, 'wirewatch-data', 'drop');
      mkdirSync(drop, { recursive: true });
      const run = () => spawnSync(command, ['-c', code], { cwd: folder, encoding: 'utf8' });
      return { drop, run };
    };

    test(`${name} writes a valid file`, { skip: !has(needed) && `${needed} is not installed` }, () =>
      inFolder(async (folder) => {
        const { drop, run } = write(folder);
        const { status, stderr } = run();
        assert.equal(status, 0, stderr);
        const [file = '', ...more] = readdirSync(drop);
        assert.deepEqual(more, []);
        const { stdout } = runToEnd(['ingest', 'validate', join(drop, file), '--json']);
        const { valid, rows, errors, ignored_columns } = JSON.parse(stdout);
        assert.deepEqual([valid, rows, errors, ignored_columns], [true, 1, [], []]);
      }),
    );

    const cannotFill = !existsSync('/dev/full') && 'there is no /dev/full';
    const skip = cannotFill || (!has(needed) && `${needed} is not installed`);
    test(`${name} leaves no partial file under the final name on a full disk`, { skip }, () =>
      inFolder(async (folder) => {
        const { drop, run } = write(folder);
        for (const draft of drafts) symlinkSync('/dev/full', join(drop, draft));
        const { status, stderr } = run();
        assert.notEqual(status, 0);
        assert.match(stderr, /No space left on device/);
        assert.deepEqual(readdirSync(drop).sort(), [...drafts].sort());
      }),
    );
  }
});
