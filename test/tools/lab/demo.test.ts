/** `wirewatch demo`: the first minute, and that it never touches another installation. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInstallation, type Detection } from '../../support/appliance.ts';
import { runBeside } from '../../support/command.ts';
import { CHANGES, follow, type Lab, type LabRow } from '../../support/lab.ts';
import { inFolder, type RunningProgram, runProgram } from '../../support/program.ts';

/** Longer than the twenty seconds between two exports. */
const DROP_PATIENCE_MS = 50_000;

interface Shown {
  readonly url: string;
  readonly keys: readonly { id: string; name: string; reads: string; key: string }[];
  readonly calls: Readonly<Record<'changes' | 'detection' | 'health', string>>;
  readonly detection: Detection | null;
  readonly photo: string | null;
}

/** Runs the demonstration until it has printed its document, then during `use`. */
async function demonstrate(
  data: string,
  use: (shown: Shown, run: RunningProgram) => Promise<void>,
): Promise<void> {
  const run = runProgram(['demo', '--data', data, '--port', '0', '--json']);
  const text = await run.until('the document', () => (/^\}$/m.test(run.stdout()) ? run.stdout() : undefined));
  await use(JSON.parse(text), run);
  run.kill('SIGINT');
  assert.equal(await run.ended, 0);
  assert.equal(run.stdout(), text, 'with --json it must print exactly one document');
}

/** Sends the request of a curl command, with its URL and headers. */
async function paste(call: string): Promise<Response> {
  const [, name = '', value = '', address = ''] = /^curl -s -H '(\w+): ([^']+)' '([^']+)'$/.exec(call) ?? [];
  return fetch(address, { headers: { [name]: value } });
}

const as = (url: string, key: string): Pick<Lab, 'read'> => ({
  async read(target) {
    const response = await fetch(`${url}${target}`, { headers: { authorization: `Bearer ${key}` } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  },
});

const fiveMinutesAgo = () => `since=${new Date(Date.now() - 300_000).toISOString()}`;

test('keys and calls work, exports keep arriving, the commands of a lab work, and the next start begins from scratch', async () => {
  await inFolder(async (folder) => {
    const data = join(folder, 'demo');
    let oldKey = '';
    await demonstrate(data, async (shown, run) => {
      const { url, keys, calls } = shown;
      const [all, some] = keys;
      assert.ok(all !== undefined && some !== undefined && keys.length === 2);
      oldKey = all.key;
      const changes = await paste(calls.changes);
      assert.equal(changes.status, 200);
      assert.equal(JSON.parse(await changes.text()).data.length, 3);
      const detection = await paste(calls.detection);
      assert.deepEqual([detection.status, JSON.parse(await detection.text()).event], [200, undefined]);

      const operation = await fetch(`${url}/operations/lab-clock`, { method: 'POST' });
      assert.equal(operation.status, 404, 'only a lab does operations without a session');
      const health = await fetch(`${url}/v1/health`);
      assert.equal(health.status, 200, await health.text());
      assert.equal(shown.detection?.id, calls.detection.split('/').at(-1)?.replace("'", ''));
      const photo = await fetch(shown.photo ?? '');
      assert.deepEqual([photo.status, photo.headers.get('content-type')], [200, 'image/png']);
      const png = Buffer.from(await photo.arrayBuffer());
      assert.equal(png.subarray(1, 4).toString(), 'PNG');
      await run.until('the requests on its log', () => run.log().find(({ msg }) => msg === 'request'));

      const first = await follow(as(url, all.key), fiveMinutesAgo());
      const { rows } = first;
      assert.ok(rows.length > 5000, `${rows.length} rows of a day`);
      assert.deepEqual(new Set(rows.map((row) => row.content_type)), new Set(['text', 'image']));
      assert.ok(
        rows.some(({ version }) => version > 1),
        'some detections have changed',
      );
      const fewer = await follow(as(url, some.key), fiveMinutesAgo());
      const readable = rows.filter((row) => `${row.subscription_id}:${row.content_type}` === some.reads);
      assert.ok(readable.length > 0 && readable.length < rows.length);
      assert.deepEqual(fewer.rows.slice(0, readable.length), readable);

      const untilMs = performance.now() + DROP_PATIENCE_MS;
      const more: LabRow[] = [];
      const events = () => new Set(more.map(({ event }) => event));
      for (let cursor = first.cursor; events().size < 2; ) {
        assert.ok(performance.now() < untilMs, 'no new and no changed detection arrived');
        await sleep(1000);
        const next = await follow(as(url, all.key), `cursor=${cursor}`);
        more.push(...next.rows);
        cursor = next.cursor;
      }
      const own = ['--account', 'sample-agency', '--scopes', 'detections:read', '--subscriptions', '7001'];
      const made = await runBeside(['key', 'create', '--data', data, '--name', 'mine', ...own, '--json']);
      assert.equal(made.status, 0, made.stderr);
      const { key: ownKey } = JSON.parse(made.stdout);
      assert.ok((await follow(as(url, ownKey), fiveMinutesAgo())).rows.length > 0);

      const moved = runProgram(['lab', 'clock', '+1h', '--data', data]);
      assert.equal(await moved.ended, 0, moved.stderr());
      const aheadMs = Date.parse(JSON.parse(moved.stdout()).now) - Date.now();
      assert.ok(Math.abs(aheadMs - 3_600_000) < 60_000, `${aheadMs} ms ahead`);
      const exam = runProgram(['lab', 'exam', '--data', data, '--patience', '1', '--json']);
      assert.equal(await exam.ended, 1, 'no client was there');
      assert.deepEqual([JSON.parse(exam.stdout()).passed, JSON.parse(exam.stdout()).requests], [false, 0]);
    });
    await demonstrate(data, async ({ url, keys }) => {
      const old = await fetch(`${url}${CHANGES}?${fiveMinutesAgo()}`, {
        headers: { authorization: `Bearer ${oldKey}` },
      });
      assert.equal(old.status, 401, 'the keys of the previous run must be gone');
      const { rows } = await follow(as(url, keys[0]?.key ?? ''), fiveMinutesAgo());
      assert.ok(rows.length > 5000);
    });
    const serve = await runBeside(['serve', '--data', data, '--port', '0']);
    assert.equal(serve.status, 78);
    assert.match(serve.stderr, /belongs to "wirewatch lab" or "wirewatch demo".*--data/);
  });
});

test('stops at once while it reads its first day', async () => {
  await inFolder(async (folder) => {
    const run = runProgram(['demo', '--data', join(folder, 'demo'), '--port', '0']);
    await run.url();
    assert.equal(await run.stop(), 0);
    assert.equal(run.stdout(), '');
  });
});

test('leaves the folder of another installation alone', async () => {
  const installation = createInstallation();
  try {
    const before = readdirSync(installation.data);
    const run = await runBeside(['demo', '--data', installation.data, '--port', '0']);
    assert.equal(run.status, 78);
    assert.match(run.stderr, /is not empty and not a folder of "wirewatch demo".*--data/);
    assert.equal(run.stdout, '');
    const made = readdirSync(installation.data).filter(
      (name) => !before.includes(name) && !name.startsWith('lock'),
    );
    assert.deepEqual(made, []);
    const keys = JSON.parse(installation.cli(['key', 'list', '--json']).stdout);
    assert.deepEqual(
      keys.map(({ status }: { status: string }) => status),
      ['active'],
    );
    const serving = await installation.serve();
    assert.equal(await serving.stop(), 0);
  } finally {
    installation.remove();
  }
});
