/**
 * detections.db is rebuilt from the log: whether deleted, replaced by an older one, damaged or of another schema, it
 * ends up equal column by column, even if settings, licences and archive have changed.
 */

import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import {
  assertSameContent,
  type Content,
  contentOfDetections,
  withoutOpenDelivery,
} from '../support/database-content.ts';
import { contentOf, fileName, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { failingCall } from '../support/preload.ts';
import type { LogLine } from '../support/program.ts';

const SETTINGS = { WIREWATCH_INGEST_QUIET_MS: '0', WIREWATCH_SERVER_BASE_URL: 'https://api.example' };
const DATABASE = ['detections.db', 'detections.db-wal', 'detections.db-shm'] as const;
const FROM_LOG = 'detections.db was brought up to date from the log';

let installation: Installation;
/** Copies of the data folder: in the middle of its history, at its end, and after a kill. */
let middle: string;
let end: string;
let killed: string;
let content: Content;
let pages: string[];
/** A cursor from the middle of the history. */
let cursor: string;

before(async () => {
  installation = createInstallation(SETTINGS);
  [middle, end, killed] = ['middle', 'end', 'killed'].map((name) => join(installation.data, '..', name)) as [
    string,
    string,
    string,
  ];
  await makeHistory();
});
after(() => installation?.remove());

/** Runs every kind of operation, with a copy in the middle; then a kill, and a clean stop. */
async function makeHistory(): Promise<void> {
  const { drop, data } = installation;
  const drops = async (serving: Serving, name: string, bytes: string | Buffer) => {
    putFile(drop, name, bytes);
    await serving.logged(name, ({ msg, file }) => /^file /.test(msg) && file === name);
  };
  const first = nextWindowMs();
  const rows = Array.from({ length: 700 }, () =>
    newRow({
      exported_at: formatMs(first),
      article_url: 'https://example.com/ü',
      // Begins like the placeholder of the base URL.
      article_headline: '\u0001/headline',
    }),
  );
  const scored = (from: number, to: number, members: Row) =>
    rows
      .slice(from, to)
      .map((row) => ({ ...row, last_scored_at: formatMs(Number(nextWindowMs())), ...members }));
  let serving = await installation.serve();
  await drops(serving, fileName('newswire', first), contentOf('ndjson', rows));
  const photo = newRow({ source_image_url: null, source_internal_id: 7 });
  await drops(serving, fileName('imagewire', nextWindowMs(), 'ndjson.zst'), contentOf('ndjson.zst', [photo]));
  await drops(serving, fileName('newswire', nextWindowMs()), ndjson(scored(10, 20, { strength_score: 90 })));
  const failing = nextWindowMs();
  await drops(serving, fileName('newswire', failing), 'broken\n');
  cursor = JSON.parse(await read(serving, `since=${formatMs(Date.now() - 60_000)}&limit=5`)).next_cursor;
  await serving.stop();
  cpSync(data, middle, { recursive: true, filter: isState });
  serving = await installation.serve();
  await drops(serving, fileName('newswire', failing), ndjson([newRow()]));
  installation.cli(['window', 'reset', 'newswire', formatMs(failing)]);
  await drops(
    serving,
    fileName('newswire', nextWindowMs()),
    ndjson([...scored(0, 30, {}), newRow({ article_print: true, article_url: 'https://print.example/1' })]),
  );
  await drops(
    serving,
    'newswire.backfill-history.ndjson.gz',
    contentOf('ndjson.gz', [
      ...scored(100, 140, { strength_score: 30 }),
      newRow(),
      newRow({ subscription_id: 9999 }),
    ]),
  );
  installation.cli(['account', 'set', 'agency', '--print-metadata', 'on']);
  installation.cli(['ingest', 'replay']);
  await drops(serving, fileName('newswire', nextWindowMs()), ndjson([newRow({ subscription_id: 7002 })]));
  pages = await readAll(serving);
  await serving.kill();
  cpSync(data, killed, { recursive: true, filter: isState });
  serving = await installation.serve();
  await serving.stop();
  cpSync(data, end, { recursive: true, filter: isState });
  content = contentOfDetections(data);
  assert.ok((content.detection?.length ?? 0) > 700 && (content.ingest_file?.length ?? 0) >= 8);
}

/** Everything except the drop folder, which is in the data folder here. */
const isState = (path: string) => !path.endsWith('/drop') && !path.endsWith('/control.sock');

async function read(serving: Serving, query: string): Promise<string> {
  const response = await fetch(`${serving.url}/v1/detections/changes?${query}`, {
    headers: { authorization: `Bearer ${installation.key}` },
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

/** Every page from the cursor on, as sent, without the next cursor. */
async function readAll(serving: Serving): Promise<string[]> {
  const all: string[] = [];
  for (let next = cursor; ; ) {
    const text = await read(serving, `cursor=${next}&limit=200`);
    const page = JSON.parse(text);
    all.push(JSON.stringify(page.data));
    next = page.next_cursor;
    if (!page.has_more) return all;
  }
}

/** Restores the data folder from a copy, applies `change`, starts and stops. @returns the log lines */
async function started(copy: string, change: () => void): Promise<readonly LogLine[]> {
  restoreFolder(copy);
  change();
  const serving = await installation.serve();
  await serving.logged('the update from the log', ({ msg }) => msg === FROM_LOG);
  assert.deepEqual(await readAll(serving), pages);
  await serving.stop();
  return serving.log;
}

function restoreFolder(copy: string): void {
  const { data } = installation;
  for (const name of readdirSync(data)) if (name !== 'drop') rmSync(join(data, name), { recursive: true });
  cpSync(copy, data, { recursive: true });
}

const place = (from: string, ...names: string[]) => {
  for (const name of names) {
    rmSync(join(installation.data, name), { force: true });
    if (existsSync(join(from, name))) cpSync(join(from, name), join(installation.data, name));
  }
};
const madeAnew = (log: readonly LogLine[]) => log.find(({ msg }) => msg === FROM_LOG)?.made_anew;

const skip = NO_PRELOAD;

describe('detections.db is rebuilt equal', () => {
  const cases: [what: string, copy: () => string, change: () => void, reason: RegExp | null][] = [
    ['deleted, with its -wal left', () => killed, () => place('', 'detections.db'), /it does not exist/],
    ['an older one, with a -wal left', () => killed, () => place(middle, 'detections.db'), null],
  ];
  for (const [what, copy, change, reason] of cases) {
    test(what, async () => {
      const log = await started(copy(), change);
      if (reason === null) assert.equal(madeAnew(log), null);
      else assert.match(String(madeAnew(log)), reason);
      const found = contentOfDetections(installation.data);
      assertSameContent(withoutOpenDelivery(found), withoutOpenDelivery(content));
      const left = readdirSync(installation.data).filter((name) => /draft|aside|damage/.test(name));
      assert.deepEqual(left, []);
    });
  }

  test('with other settings, another subscription and an empty archive', async () => {
    await started(end, () => {
      place('', ...DATABASE);
      installation.cli(['account', 'set', 'agency', '--print-metadata', 'off']);
      installation.cli(['subscription', 'add', '7003', '--account', 'agency']);
      renameSync(join(installation.drop, 'archive'), join(installation.drop, '..', 'elsewhere'));
    });
    const found = contentOfDetections(installation.data);
    assertSameContent(withoutOpenDelivery(found), withoutOpenDelivery(content));
    rmSync(join(installation.drop, 'archive'), { recursive: true, force: true });
    renameSync(join(installation.drop, '..', 'elsewhere'), join(installation.drop, 'archive'));
  });
});

test('the port is open during the rebuild, and nothing is served from it before', { skip }, async () => {
  restoreFolder(end);
  place('', ...DATABASE);
  // The new database gets its name only once there is space.
  const full = failingCall('link', 'ENOSPC', /detections\.db$/, join(installation.data, 'full'));
  full.begin();
  const serving = await installation.serve(full.settings);
  const headers = { authorization: `Bearer ${installation.key}` };
  const health = await serving.get('/v1/health');
  assert.equal(health.status, 503);
  const { exports, alerts } = JSON.parse(await health.text());
  assert.equal(exports.newswire.newest_done, null, 'nothing is known of the exports');
  assert.ok(alerts.page_worthy > 0);
  const refused = await fetch(`${serving.url}/v1/detections/changes?cursor=${cursor}`, { headers });
  assert.equal(refused.status, 500);
  assert.equal(refused.headers.get('retry-after'), '5');
  full.end();
  await serving.logged('the update from the log', ({ msg }) => msg === FROM_LOG);
  assert.ok(!serving.log.some(({ msg }) => msg === 'fault'), 'an expected refusal is no fault');
  assert.deepEqual(await readAll(serving), pages);
  await serving.stop();
});

test('the port is open while there is no space to apply the last entries', { skip }, async () => {
  restoreFolder(end);
  place(middle, ...DATABASE);
  const full = failingCall('write', 'ENOSPC', /\.zst\.tmp$/, join(installation.data, 'full'));
  full.begin();
  const serving = await installation.serve(full.settings);
  await serving.logged('waiting', ({ msg }) => /^the disk is full: ingest waits/.test(msg));
  const health = await serving.get('/v1/health');
  assert.equal(health.status, 503);
  full.end();
  await serving.logged('the update from the log', ({ msg }) => msg === FROM_LOG);
  assert.deepEqual(await readAll(serving), pages);
  await serving.stop();
});

describe('an unreliable state is refused, and nothing is changed', () => {
  const cases: [what: string, change: () => void, reason: RegExp][] = [
    [
      'the log is missing',
      () => rmSync(join(installation.data, 'log'), { recursive: true }),
      /the log is missing.*wirewatch compact --data \//s,
    ],
    [
      'the log is an older one',
      () => {
        rmSync(join(installation.data, 'log'), { recursive: true });
        cpSync(join(middle, 'log'), join(installation.data, 'log'), { recursive: true });
      },
      /the log ends with entry \d+, but the database has applied entry \d+/,
    ],
    [
      'the log is damaged, and the database is gone',
      () => {
        place('', ...DATABASE);
        damageLog();
      },
      /the log in .* is damaged: .* is damaged at byte/,
    ],
  ];
  for (const [what, change, reason] of cases) {
    test(what, async () => {
      restoreFolder(end);
      change();
      const before = stateOf();
      const run = installation.begin();
      await assert.rejects(run.url(), reason);
      assert.deepEqual(stateOf(), before);
    });
  }
});

function damageLog(): void {
  const [name = ''] = readdirSync(join(installation.data, 'log'));
  const path = join(installation.data, 'log', name);
  const bytes = readFileSync(path);
  bytes[200] = (bytes[200] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** The state of the log and the database. */
function stateOf(): unknown {
  const { data } = installation;
  return [
    'detections.db',
    ...(existsSync(join(data, 'log')) ? readdirSync(join(data, 'log')) : []).map((name) =>
      join('log', `${name}`),
    ),
  ]
    .filter((name) => existsSync(join(data, name)))
    .map((name) => [name, readFileSync(join(data, name)).toString('base64')]);
}
