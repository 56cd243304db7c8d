/**
 * `wirewatch pull` against the real appliance: its copy ends equal to the server's period walk, however often it was
 * killed on the way (contract: Client procedures, Retry).
 */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { grouped } from '../../src/counted.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { inFolder, runProgram } from '../support/program.ts';

const MONTHS_BACKFILLED = 3;
const KILLS = 8;

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());

before(async () => {
  appliance = await startAppliance();
  const subscriptions = ['--subscriptions', '7001,7002:text', '--seed', 'pull'];
  const history = ['--backfill', 'history', '--windows', `${MONTHS_BACKFILLED * 30 * 144}`, '--rows', '600'];
  appliance.cli(['generate', '--out', appliance.drop, ...subscriptions, ...history]);
  appliance.cli(['generate', '--out', appliance.drop, ...subscriptions, '--windows', '4', '--rows', '300']);
  // Two backfills and four windows of both exports.
  await untilDealtWith(10);
});

after(() => appliance.stop());

async function untilDealtWith(files: number): Promise<void> {
  for (let turn = 0; turn < 600; turn += 1) {
    const status = JSON.parse(appliance.cli(['ingest', 'status', '--files', '100', '--json']).stdout);
    if (status.files.filter((file: { outcome: string }) => file.outcome === 'applied').length >= files)
      return;
    await sleep(100);
  }
  assert.fail('the exports were not applied');
}

/** Every detection as the period endpoint has it, by id, without what a re-scoring changes unannounced. */
async function periodWalk(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { subscriptions } = JSON.parse(await (await appliance.get('/v1/me')).text());
  for (const { id, data_starts } of subscriptions) {
    for (const [content_type, start] of Object.entries(data_starts)) {
      if (typeof start !== 'string') continue;
      for (
        let day = start.slice(0, 10);
        day <= new Date().toISOString().slice(0, 10);
        day = plusDays(day, 20)
      ) {
        await walk(
          `from=${day}&to=${plusDays(day, 19)}&time_zone=UTC&limit=1000&subscription_id=${id}&content_type=${content_type}`,
          found,
        );
      }
    }
  }
  return found;
}

async function walk(query: string, found: Map<string, string>): Promise<void> {
  for (let cursor = ''; ; ) {
    const response = await appliance.get(`/v1/detections?${query}${cursor}`);
    assert.equal(response.status, 200, await response.clone().text());
    const page = JSON.parse(await response.text());
    for (const row of page.data) found.set(row.id, comparable(row));
    if (!page.has_more) return;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

function plusDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

function comparable(row: Record<string, unknown>): string {
  return JSON.stringify({ ...row, last_scored_at: '', exported_at: '' });
}

function copyIn(path: string): Map<string, string> {
  const db = openDatabase(path, 'read');
  const rows = db
    .prepare<unknown[], { id: string; version: number; body: string }>(
      'SELECT id, version, body FROM detections',
    )
    .all();
  const cursors = db.prepare('SELECT cursor FROM state').pluck().all();
  db.close();
  assert.equal(cursors.length, 1);
  assert.equal(typeof cursors[0], 'string', 'the stream has begun');
  for (const { id, version, body } of rows) {
    const detection = JSON.parse(body);
    assert.deepEqual([detection.id, detection.version, 'event' in detection], [id, version, false]);
  }
  return new Map(rows.map(({ id, body }) => [id, comparable(JSON.parse(body))]));
}

function pullArgs(folder: string, ...more: string[]): string[] {
  const keyFile = join(folder, 'key');
  writeFileSync(keyFile, `${appliance.key}\n`);
  return ['pull', '--base-url', appliance.serving().url, '--key-file', keyFile, ...more];
}

async function pulled(args: string[]): Promise<{ code: number | null; told: string; printed: string }> {
  const program = runProgram(args);
  const code = await program.ended;
  return { code, told: program.told(), printed: program.printed() };
}

describe('pull', () => {
  test('a full copy equals the period walk of the server', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      const { code, told, printed } = await pulled(pullArgs(folder, '--into', into, '--full'));
      assert.equal(code, 0, told);
      const walked = await periodWalk();
      const count = grouped(walked.size);
      // The change stream brings again what was delivered since the newest finished window: that is nothing new.
      assert.equal(
        printed,
        `${count} detections added or changed in ${into}, which now has ${count}. Run the same command again to fetch later changes.\n`,
      );
      const again = JSON.parse((await pulled(pullArgs(folder, '--into', into, '--json'))).printed);
      assert.deepEqual(again, { into, rows_read: 0, stored: 0, detections: walked.size });
      assert.ok(walked.size > 1000, `${walked.size} detections`);
      assert.deepEqual(copyIn(into), walked);
    }));

  test('killed at any moment and started again, the copy ends equal', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      for (let kill = 0; kill < KILLS; kill += 1) {
        const program = runProgram(pullArgs(folder, '--into', into, '--full'));
        await sleep(150 + ((kill * 53) % 200));
        program.kill('SIGKILL');
        await program.ended;
      }
      const { code, told } = await pulled(pullArgs(folder, '--into', into, '--full'));
      assert.equal(code, 0, told);
      assert.deepEqual(copyIn(into), await periodWalk());
    }));

  test('a copy goes on with its cursor and takes over what changed since', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      assert.equal((await pulled(pullArgs(folder, '--into', into, '--full'))).code, 0);
      const later = [
        '--subscriptions',
        '7001,7002:text',
        '--seed',
        'pull',
        '--windows',
        '1',
        '--rows',
        '400',
      ];
      appliance.cli(['generate', '--out', appliance.drop, ...later, '--start', windowBefore(6)]);
      await untilDealtWith(12);
      const { code, told } = await pulled(pullArgs(folder, '--into', into));
      assert.equal(code, 0, told);
      assert.deepEqual(copyIn(into), await periodWalk());
    }));

  test('without --full a new copy begins at --since, and by default with the present', () =>
    inFolder(async (folder) => {
      const all = join(folder, 'all.db');
      const since = new Date(Date.now() - 3_600_000).toISOString();
      assert.equal((await pulled(pullArgs(folder, '--into', all, '--since', since))).code, 0);
      assert.deepEqual(copyIn(all), await periodWalk());
      const none = join(folder, 'none.db');
      const begun = await pulled(pullArgs(folder, '--into', none));
      assert.equal(begun.code, 0);
      assert.match(begun.printed, /This new copy starts with changes from now on\. .* --full\.\n$/);
      assert.equal(copyIn(none).size, 0);
      const again = await pulled(pullArgs(folder, '--into', none));
      assert.doesNotMatch(again.printed, /--full/);
    }));

  test('--follow goes on until it is stopped, which is a good end', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'lines');
      const program = runProgram(
        pullArgs(folder, '--into', into, '--follow', '--poll-seconds', '1', '--format', 'ndjson'),
      );
      await program.until('its place', () => lines(into) ?? undefined);
      const row = [
        '--subscriptions',
        '7001',
        '--seed',
        'follow',
        '--windows',
        '1',
        '--rows',
        '5',
        '--export',
        'newswire',
      ];
      appliance.cli(['generate', '--out', appliance.drop, ...row, '--start', windowBefore(9)]);
      await program.until('five lines', () => ((lines(into)?.length ?? 0) >= 5 ? true : undefined));
      program.kill('SIGTERM');
      assert.equal(await program.ended, 0, program.told());
    }));

  test('--format ndjson writes each version once, also when it was killed', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'changes.ndjson');
      const args = pullArgs(folder, '--into', into, '--format', 'ndjson');
      const since = new Date(Date.now() - 3_600_000).toISOString();
      for (const delayMs of [180, 220, 260, 300]) {
        const isNew = lines(into) === null;
        const program = runProgram(isNew ? [...args, '--since', since] : args);
        await sleep(delayMs);
        program.kill('SIGKILL');
        await program.ended;
      }
      const isNew = lines(into) === null;
      const { code, told } = await pulled(isNew ? [...args, '--since', since] : args);
      assert.equal(code, 0, told);
      const versions = (lines(into) ?? []).map((line) => {
        const { id, version } = JSON.parse(line);
        return `${id} ${version}`;
      });
      assert.equal(new Set(versions).size, versions.length, 'a line twice');
      assert.equal(new Set(versions.map((version) => version.split(' ')[0])).size, (await periodWalk()).size);
    }));
});

/** The lines that belong to the copy; null while it has no place noted. */
function lines(path: string): string[] | null {
  try {
    const { bytes, cursor } = JSON.parse(readFileSync(`${path}.place`, 'utf8'));
    if (cursor === null) return null;
    return readFileSync(path)
      .subarray(0, bytes)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return null;
  }
}

function windowBefore(windows: number): string {
  return new Date((Math.floor(Date.now() / 600_000) - windows) * 600_000).toISOString();
}

/** A subscription as /v1/me has it. */
function subscription(id: number, ...content_types: string[]) {
  const start = new Date().toISOString();
  return { id, content_types, data_starts: Object.fromEntries(content_types.map((type) => [type, start])) };
}

/**
 * A service that has no rows, and notes what is asked of it besides /v1/me.
 *
 * @param answers the first ones, to those requests; what comes after is answered well
 */
async function withService(
  subscriptions: object[],
  answers: [number, Record<string, string>][],
  use: (to: string[], folder: string, asked: string[]) => Promise<void>,
): Promise<void> {
  const page = JSON.stringify({ data: [], next_cursor: 'abc', has_more: false, as_of: null });
  const asked: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const isMe = request.url === '/v1/me';
    if (!isMe) asked.push(request.url ?? '');
    const [status, headers] = (isMe ? undefined : answers.shift()) ?? [200, {}];
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    const body = isMe ? JSON.stringify({ subscriptions }) : page;
    response.end(status === 200 ? body : JSON.stringify({ detail: `because of ${status}` }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, 'key'), 'ww_live_x');
      const to = ['pull', '--base-url', `http://127.0.0.1:${port}`, '--key-file', join(folder, 'key')];
      await use(to, folder, asked);
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('pull of some streams', () => {
  /** The parameters of each request that choose streams. */
  const chosen = (asked: string[]) =>
    asked.map((url) => {
      const { pathname, searchParams } = new URL(url, 'http://x');
      return [pathname, searchParams.get('subscription_id'), searchParams.get('content_type')].join(' ');
    });
  const three = [7001, 7002, 7003].map((id) => subscription(id, 'text', 'image'));
  const twelve = Array.from({ length: 12 }, (_, index) => subscription(7001 + index, 'text', 'image'));

  for (const format of ['sqlite', 'ndjson']) {
    test(`every request names them, and the copy goes on with them only (${format})`, () =>
      withService(three, [], async (to, folder, asked) => {
        const args = [...to, '--into', join(folder, 'copy'), '--format', format];
        const some = ['--subscription', '7002,7001', '--content-type', 'text'];
        const full = await pulled([...args, '--full', ...some]);
        assert.equal(full.code, 0, full.told);
        const stream = '/v1/detections/changes 7001,7002 text';
        assert.deepEqual([...new Set(chosen(asked))].sort(), [
          '/v1/detections 7001 text',
          '/v1/detections 7002 text',
          stream,
        ]);
        for (const same of [[], some, ['--subscription', '7001,7002']]) {
          asked.length = 0;
          assert.equal((await pulled([...args, ...same])).code, 0);
          assert.deepEqual(chosen(asked), [stream]);
        }
        asked.length = 0;
        for (const other of [
          ['--subscription', '7001'],
          ['--content-type', 'image'],
        ]) {
          const { code, told } = await pulled([...args, ...other]);
          assert.equal(code, 2, told);
          assert.match(told, /was started with --subscription 7001,7002 --content-type text\. Leave/);
        }
        assert.deepEqual(asked, []);
      }));

    test(`a copy that an earlier version began is of all of them, or refused (${format})`, () =>
      withService(three, [], async (to, folder, asked) => {
        const into = join(folder, 'copy');
        const args = [...to, '--into', into, '--format', format];
        assert.equal((await pulled(args)).code, 0);
        if (format === 'ndjson') {
          const { selection: _, ...place } = JSON.parse(readFileSync(`${into}.place`, 'utf8'));
          writeFileSync(`${into}.place`, JSON.stringify(place));
        } else {
          edit(into, 'PRAGMA user_version = 1');
          const { code, told } = await pulled(args);
          assert.deepEqual([code, /was created by another version.*--into/.test(told)], [1, true], told);
          return;
        }
        const { code, told } = await pulled([...args, '--subscription', '7001']);
        assert.equal(code, 2, told);
        assert.match(told, /was started without --subscription and --content-type/);
        asked.length = 0;
        assert.equal((await pulled(args)).code, 0);
        assert.deepEqual(chosen(asked), ['/v1/detections/changes  ']);
      }));
  }

  test('a copy whose position is damaged is refused', () =>
    withService(three, [], async (to, folder) => {
      const args = [...to, '--into', join(folder, 'copy.db')];
      assert.equal((await pulled(args)).code, 0);
      edit(join(folder, 'copy.db'), "UPDATE state SET notes = '{}'");
      const { code, told } = await pulled(args);
      assert.deepEqual([code, /does not contain the position of a copy.*--into/.test(told)], [1, true], told);
    }));

  test('20 are not too many', () =>
    withService(twelve.slice(0, 10), [], async (to, folder) => {
      const { code, told } = await pulled([...to, '--into', join(folder, 'copy.db')]);
      assert.equal(code, 0, told);
    }));

  test('of the appliance: a copy of one stream is that stream, and a key with many takes groups', () =>
    inFolder(async (folder) => {
      const into = join(folder, 'copy.db');
      const some = ['--subscription', '7001', '--content-type', 'text'];
      const { code, told } = await pulled(pullArgs(folder, '--into', into, '--full', ...some));
      assert.equal(code, 0, told);
      const expected = [...(await periodWalk())].filter(([, row]) => {
        const { subscription_id, content_type } = JSON.parse(row);
        return subscription_id === 7001 && content_type === 'text';
      });
      assert.ok(expected.length > 0);
      assert.deepEqual(copyIn(into), new Map(expected));

      appliance.cli(['account', 'add', 'many', '--name', 'Many']);
      const ids = Array.from({ length: 11 }, (_, index) => `${8001 + index}`);
      for (const id of ids) appliance.cli(['subscription', 'add', id, '--account', 'many']);
      const key = createKey(appliance.cli, 'many', ids.join(','));
      const many = pullArgs(folder, '--into', join(folder, 'many.db'));
      writeFileSync(join(folder, 'key'), key);
      for (const [refused, ...more] of [
        [/22 streams; at most 20/],
        [/22 streams; at most 20/, '--full'],
        [/subscription_id: every value must be one of the key's/, '--subscription', '8001,7001'],
        [/subscription_id: every value must be one of the key's/, '--subscription', '8001,7001', '--full'],
      ] as const) {
        const { code, told } = await pulled([...many, ...more]);
        assert.equal(code, 1, told);
        assert.match(told, refused);
      }
      assert.equal(rowsRead(join(folder, 'many.db')), 0, 'nothing is read before it is refused');
      const group = await pulled([...many, '--subscription', ids.slice(0, 4).join(',')]);
      assert.equal(group.code, 0, group.told);
    }));
});

test('a full copy begins the stream with as_of before it reads on, and follows it by cursor for ever', () =>
  withService([subscription(7001, 'text')], [], async (to, folder, asked) => {
    const into = join(folder, 'copy.db');
    const [fromMs, toMs] = [Date.now() - 62_000, Date.now()];
    const { code, told } = await pulled([...to, '--into', into, '--full']);
    assert.equal(code, 0, told);
    const urls = asked.map((url) => new URL(url, 'http://x'));
    assert.deepEqual(
      urls.map(({ pathname, searchParams }) => `${pathname} ${searchParams.get('limit')}`),
      ['/v1/detections 1', '/v1/detections/changes 1', '/v1/detections 1000', '/v1/detections/changes 1000'],
    );
    const sinceMs = Date.parse(urls[1]?.searchParams.get('since') ?? '');
    assert.ok(sinceMs >= fromMs && sinceMs <= toMs, 'by the clock of the server where there is no as_of');
    assert.deepEqual(
      [urls[3]?.searchParams.get('cursor'), urls[3]?.searchParams.get('since')],
      ['abc', null],
    );
  }));

test('the key file may be what key create --json printed', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    const args = [...to, '--into', join(folder, 'copy.db')];
    writeFileSync(join(folder, 'key'), JSON.stringify({ id: 'x', key: 'ww_live_x' }, null, 2));
    const { code, told } = await pulled(args);
    assert.equal(code, 0, told);
    for (const wrong of ['{"id":"x"}', '{"key":']) {
      writeFileSync(join(folder, 'key'), wrong);
      const refused = await pulled(args);
      assert.deepEqual(
        [refused.code, /does not contain an API key/.test(refused.told)],
        [1, true],
        refused.told,
      );
    }
  }));

test('a full copy that was broken off goes on without a stream that the key has lost', () =>
  withService([subscription(7001, 'text')], [], async (to, folder, asked) => {
    const into = join(folder, 'copy.ndjson');
    const period = { from: '2026-11-01', to: '2026-11-20' };
    const steps = [
      { subscription_id: 7009, content_type: 'text', ...period },
      { subscription_id: 7001, content_type: 'image', ...period },
      { subscription_id: 7001, content_type: 'text', ...period },
    ];
    const walk = { steps, cursor: 'of-the-first' };
    writeFileSync(into, '');
    writeFileSync(`${into}.place`, JSON.stringify({ bytes: 0, head: '', cursor: 'months-old', walk }));
    const { code, told } = await pulled([...to, '--into', into, '--format', 'ndjson']);
    assert.equal(code, 0, told);
    const [first = '', ...rest] = asked;
    assert.match(first, /^\/v1\/detections\?subscription_id=7001&content_type=text&/);
    assert.doesNotMatch(first, /cursor/);
    assert.deepEqual(rest, ['/v1/detections/changes?cursor=months-old&limit=1000']);
  }));

/** What a copy that was refused has. */
function rowsRead(path: string): unknown {
  const db = new DatabaseSync(path);
  const { rows } =
    db
      .prepare('SELECT (SELECT count(*) FROM detections) + (SELECT count(cursor) FROM state) AS rows')
      .get() ?? {};
  db.close();
  return rows;
}

function edit(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

describe('pull and answers that are no pages', () => {
  const against = (
    answers: [number, Record<string, string>][],
    use: (program: { code: number | null; told: string }, asked: string[]) => void,
  ) =>
    withService([], answers, async (to, folder, asked) => {
      const since = ['--since', new Date(Date.now() - 60_000).toISOString()];
      use(await pulled([...to, ...since, '--into', join(folder, 'copy.db')]), asked);
    });

  const isNeverRepeated = (status: number) =>
    against([[status, {}]], ({ code, told }, asked) => {
      assert.equal(code, 1);
      assert.match(told, new RegExp(`answered with status ${status}: because of ${status}`));
      assert.equal(asked.length, 1);
    });

  test('400 is never asked for again', () => isNeverRepeated(400));
  test('401 is never asked for again', () => isNeverRepeated(401));
  test('403 is never asked for again', () => isNeverRepeated(403));
  test('404 is never asked for again', () => isNeverRepeated(404));

  const isRepeated = (status: number) =>
    against([[status, { 'retry-after': '0' }]], ({ code, told }, asked) => {
      assert.equal(code, 0, told);
      assert.match(told, new RegExp(`because of ${status}; waiting 0 s`));
      assert.equal(asked.length, 2);
      assert.equal(asked[0], asked[1], 'the same request');
    });

  test('429 is asked for again after Retry-After', () => isRepeated(429));
  test('500 is asked for again after Retry-After', () => isRepeated(500));
  test('502 is asked for again after Retry-After', () => isRepeated(502));
  test('503 is asked for again after Retry-After', () => isRepeated(503));
  test('504 is asked for again after Retry-After', () => isRepeated(504));

  test('without Retry-After the wait doubles', () =>
    against(
      [
        [503, {}],
        [503, {}],
      ],
      ({ code, told }, asked) => {
        assert.equal(code, 0, told);
        assert.match(told, /waiting 1 s[\s\S]*waiting 2 s/);
        assert.equal(asked.length, 3);
      },
    ));
});

describe('pull, used wrongly', () => {
  test('without a key file, and with one that holds no key', () =>
    inFolder(async (folder) => {
      const options = [
        'pull',
        '--base-url',
        'http://127.0.0.1:1',
        '--into',
        join(folder, 'copy.db'),
        '--key-file',
      ];
      const missing = await pulled([...options, join(folder, 'none')]);
      assert.deepEqual([missing.code, /there is no key file/.test(missing.told)], [1, true], missing.told);
      writeFileSync(join(folder, 'key'), 'two words');
      const wrong = await pulled([...options, join(folder, 'key')]);
      assert.deepEqual([wrong.code, /does not contain an API key/.test(wrong.told)], [1, true], wrong.told);
      assert.ok(!wrong.told.includes('two words'), 'what was in the file is not shown');
    }));

  test('a file that is no copy is not touched, nor is one that lacks lines', () =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, 'key'), 'ww_live_x');
      const into = join(folder, 'notes.txt');
      const options = ['--key-file', join(folder, 'key'), '--format', 'ndjson', '--into', into];
      const args = ['pull', '--base-url', 'http://127.0.0.1:1', ...options];
      writeFileSync(into, 'my notes');
      const foreign = await pulled(args);
      assert.deepEqual([foreign.code, /already exists, but is not a copy/.test(foreign.told)], [1, true]);
      writeFileSync(`${into}.place`, JSON.stringify({ bytes: 100, head: '', cursor: 'x', walk: null }));
      const shorter = await pulled(args);
      assert.deepEqual(
        [shorter.code, /lines are missing.*--into/.test(shorter.told)],
        [1, true],
        shorter.told,
      );
      assert.equal(readFileSync(into, 'utf8'), 'my notes');
    }));

  test('a base address that is none, a format that is none, --since with --full, streams that are none', () =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, 'key'), 'ww_live_x');
      const common = ['pull', '--key-file', join(folder, 'key'), '--into', join(folder, 'copy.db')];
      for (const wrong of [
        ['--base-url', 'ftp://x'],
        ['--base-url', 'http://127.0.0.1:1', '--format', 'xml'],
        ['--base-url', 'http://127.0.0.1:1', '--full', '--since', '2026-01-01T00:00:00Z'],
        ['--base-url', 'http://127.0.0.1:1', '--subscription', '7001,x'],
        ['--base-url', 'http://127.0.0.1:1', '--content-type', 'video'],
        ['--base-url', 'http://127.0.0.1:1', '--poll-seconds', '86401'],
      ]) {
        assert.equal((await pulled([...common, ...wrong])).code, 2, wrong.join(' '));
      }
    }));
});
