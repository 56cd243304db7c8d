/**
 * Clients follow the change stream while exports arrive in any order, are corrected and repeated, and while the program
 * is stopped, killed and restarted (contract: GET /v1/detections/changes, Events).
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExportName } from '../../src/detection/content-type.ts';
import { formatMs, WINDOW_MS } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { addOtherAccount, type ChangesPage, type Detection, sharedAppliance } from '../support/appliance.ts';
import { assertSameList } from '../support/database-content.ts';
import { contentOf, fileName, nextWindowMs, type Row } from '../support/export-files.ts';
import { follow as readAll, readerOf } from '../support/lab.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { filesBelow } from '../support/test-folder.ts';

const SEED = 'followers';
const WINDOWS = 12;
const ROWS_A_FILE = 30;
const POLL_MS = 15;
const CHANGES = '/v1/detections/changes';

/** Whether every file is in the archive. */
let isWritten = false;

const appliance = await sharedAppliance({
  WIREWATCH_INGEST_QUIET_MS: '0',
  // The stored rows must not depend on the port of a run.
  WIREWATCH_SERVER_BASE_URL: 'https://api.example',
});
addOtherAccount(appliance.cli);

/** Reads a page; retries while the program is down, as clients do. */
async function readPage(query: string): Promise<ChangesPage> {
  for (;;) {
    const answer = await appliance
      .get(`${CHANGES}?${query}`)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => null);
    if (answer === null) await sleep(POLL_MS);
    else if (answer.status === 200) return JSON.parse(answer.text);
    else throw new Error(`${query}: ${answer.status} ${answer.text}`);
  }
}

interface Follower {
  /** Its first query, without the limit. */
  readonly start: string;
  readonly limit: () => number;
  /** Whether a page is lost before its rows and cursor are stored, so that it is requested again. */
  readonly loses?: () => boolean;
}

/** Follows until everything is written and read; @returns the stored rows, in order */
async function follow({ start, limit, loses = () => false }: Follower): Promise<Detection[]> {
  const stored: Detection[] = [];
  let position = start;
  let asOf = '';
  for (;;) {
    const isLast = isWritten;
    const rowsMax = limit();
    const page = await readPage(`${position}&limit=${rowsMax}`);
    assert.ok(page.data.length <= rowsMax);
    if (page.has_more) assert.equal(page.data.length, rowsMax, 'a page is full while there is more');
    if (loses()) continue;
    stored.push(...page.data);
    position = `cursor=${page.next_cursor}`;
    assert.ok((page.as_of ?? '') >= asOf, 'as_of must not go back');
    asOf = page.as_of ?? '';
    if (page.has_more) continue;
    if (isLast) return stored;
    await sleep(POLL_MS);
  }
}

type DroppedFile = Readonly<{ name: string; content: Buffer }>;

/** Both exports of each window, some of them corrected and repeated, in random order. */
function exportsOf(prng: Prng): DroppedFile[] {
  const files: DroppedFile[] = [];
  for (let window = 0; window < WINDOWS; window += 1) {
    const windowMs = nextWindowMs();
    for (const exportName of ['newswire', 'imagewire'] as const) {
      const form = prng.pick(['ndjson', 'ndjson.gz', 'csv', 'csv.zst'] as const);
      const name = fileName(exportName, windowMs, form);
      const rows = rowsOf(prng, exportName, windowMs);
      const content = contentOf(form, rows);
      files.push({ name, content });
      if (prng.chance(0.3)) files.push({ name, content });
      const exported_at = formatMs(windowMs);
      const corrected = rows.map((row) => ({ ...row, strength_score: prng.below(99), exported_at }));
      if (prng.chance(0.4)) files.push({ name, content: contentOf(form, corrected) });
    }
  }
  return files
    .map((file) => ({ file, at: prng.below(1e9) }))
    .sort((one, other) => one.at - other.at)
    .map(({ file }) => file);
}

/** Rows of few detections, so that most occur repeatedly. */
function rowsOf(prng: Prng, exportName: ExportName, windowMs: number): Row[] {
  return Array.from({ length: ROWS_A_FILE }, () => ({
    subscription_id: prng.pick(exportName === 'newswire' ? [7001, 7001, 7002, 8001] : [7001, 7001, 8001]),
    source_internal_id: 1 + prng.below(4),
    source_id: `urn:${prng.below(3)}`,
    article_id: 1 + prng.below(12),
    first_detected_at: formatMs(windowMs - prng.below(5) * WINDOW_MS),
    last_scored_at: formatMs(windowMs + prng.below(4) * 60_000),
    strength_score: prng.pick([0, 24.5, 25, 29.5, 30, 49.5, 50, 60, 75, 95, prng.below(9900) / 100]),
    article_publisher_id: prng.pick([1, 2, 3, null]),
    article_domain: prng.pick(['one.example', 'two.example', null]),
    ...(exportName === 'newswire' ? { article_print: prng.chance(0.3) } : {}),
  }));
}

/** Drops the files one by one; meanwhile stops the program once and kills it once. */
async function write(files: readonly DroppedFile[], prng: Prng): Promise<void> {
  for (const [index, { name, content }] of files.entries()) {
    // A second file of this name would replace the first.
    while (existsSync(join(appliance.drop, name))) await sleep(POLL_MS);
    appliance.put(name, content);
    if (index === Math.floor(files.length / 3)) await appliance.restart();
    if (index === Math.floor((2 * files.length) / 3)) {
      await appliance.serving().kill();
      await appliance.restart();
    }
    await sleep(prng.below(40));
  }
  const archived = () => filesBelow(join(appliance.drop, 'archive')).length;
  while (archived() < files.length) await sleep(POLL_MS);
  isWritten = true;
}

test('every follower sees every version once and in order', async () => {
  const prng = seededPrng(SEED, 'exports');
  const files = exportsOf(prng);
  const anyLimit = () => 1 + prng.below(60);
  const since = `since=${formatMs(Date.now() - 60_000)}`;
  const { next_cursor } = await readPage(since);

  const writing = write(files, prng);
  const [whole, byCursor, forgetful] = await Promise.all([
    follow({ start: since, limit: () => 1000 }),
    follow({ start: `cursor=${next_cursor}`, limit: anyLimit }),
    follow({ start: since, limit: () => 1 + prng.below(9), loses: () => prng.chance(0.3) }),
  ]);
  await writing;

  const { rows: all } = await readAll(readerOf(appliance.serving().url, appliance.key), since);
  assertVersions(all);
  assert.ok(all.length > 400, `${all.length} versions`);
  assertSameList(whole, all, 'whole');
  assertSameList(byCursor, all, 'by cursor');
  assertSameList(forgetful, all, 'forgetful');
  assert.ok(all.every((row) => row.subscription_id !== 8001));
  await assertCurrent(all);
});

/**
 * Each detection's versions must be 1, 2, 3, … in order, each different from the one before; only the first is
 * `created`.
 */
function assertVersions(rows: readonly Detection[]): void {
  const last = new Map<string, Detection>();
  for (const row of rows) {
    const before = last.get(row.id);
    assert.equal(row.version, (before?.version ?? 0) + 1, row.id);
    assert.equal(row.event, row.version === 1 ? 'created' : 'updated');
    if (before !== undefined)
      assert.notDeepEqual(visibleOf(row), visibleOf(before), 'a version without a change');
    last.set(row.id, row);
  }
}

/** The last version on the stream must equal the current detection, except for the time of its last scoring. */
async function assertCurrent(rows: readonly Detection[]): Promise<void> {
  const newest = new Map(rows.map((row) => [row.id, row]));
  for (const [id, row] of newest) {
    const current = await appliance.detection(id);
    assert.ok(current !== null, id);
    assert.equal(current.event, undefined);
    assert.equal(current.version, row.version, id);
    assert.deepEqual(visibleOf(current), visibleOf(row));
    assert.ok(current.last_scored_at >= row.last_scored_at, id);
  }
}

/** The members whose change creates a version. */
function visibleOf(row: Detection): object {
  return { ...row, version: 0, event: '', last_scored_at: '', exported_at: '' };
}
