/**
 * Killed a hundred times at work, the appliance ends up in the same state as an undisturbed one: each file once in the
 * archive and in the log, the same detections, and a change stream on which a client sees each version exactly once.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import type { ExportName } from '../../src/detection/content-type.ts';
import { FORMS } from '../../src/exports/file-name.ts';
import { createStreamCursors } from '../../src/query/stream-cursor.ts';
import { formatMs } from '../../src/time.ts';
import { createInstallation, type Detection, type Installation, putFile } from '../support/appliance.ts';
import { contentOf, fileName, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { detectionsOf, isErrorLine, loggedFiles, loggedPositions } from '../support/installation-state.ts';

const KILLS = 100;
const SEED = 20261121;
const WINDOWS = 35;
/** Several transactions, so that kills occur before, between and after them. */
const BACKFILL_ROWS = 65_000;
const TIMEOUT_MS = 60_000;

interface PlannedFile {
  readonly name: string;
  readonly content: Buffer;
}

interface Moment {
  /** Time since the start of the program. */
  readonly killMs: number;
  /** The numbers of files dropped before the start, and while the program runs. */
  readonly before: number;
  readonly during: number;
}

test(`killed ${KILLS} times, it ends like an undisturbed run`, { timeout: 300_000 }, async () => {
  const files = plannedFiles();
  const settings = { WIREWATCH_INGEST_QUIET_MS: '10' };
  const killed = createInstallation(settings);
  const undisturbed = createInstallation(settings);
  try {
    const follower = await killOften(killed, files);
    await followToTheEnd(killed, files, follower);
    const reference = new Follower(undisturbed);
    mkdirSync(undisturbed.drop, { recursive: true });
    for (const { name, content } of files) putFile(undisturbed.drop, name, content);
    await followToTheEnd(undisturbed, files, reference);

    checkFolder(killed, files);
    checkLog(killed, files);
    assert.deepEqual(streamsOf(follower.rows), streamsOf(reference.rows));
    assert.deepEqual(detectionsOf(killed), detectionsOf(undisturbed));
  } finally {
    killed.remove();
    undisturbed.remove();
  }
});

/** Windows with new and rescored detections, and a backfill for another subscription. */
function plannedFiles(): PlannedFile[] {
  const seen: Record<ExportName, Row[]> = { newswire: [], imagewire: [] };
  const files: PlannedFile[] = [];
  for (let window = 0; window < WINDOWS; window += 1) {
    const startMs = nextWindowMs();
    for (const exportName of ['imagewire', 'newswire'] as const) {
      const form = FORMS[(window + files.length) % FORMS.length] ?? 'ndjson';
      const scored = { last_scored_at: formatMs(startMs), exported_at: formatMs(startMs + 1000) };
      const again = seen[exportName]
        .filter((_, index) => index % 3 === window % 3)
        .slice(-20)
        .map((row, index) => ({ ...row, ...scored, strength_score: (window * 7 + index) % 100 }));
      const rows = Array.from({ length: 1 + (window % 5) * 4 }, (_, index) =>
        newRow({ ...scored, strength_score: index, ...(exportName === 'imagewire' ? PHOTO : {}) }),
      );
      seen[exportName].push(...rows);
      files.push({
        name: fileName(exportName, startMs, form),
        content: contentOf(form, [...rows, ...again]),
      });
    }
  }
  const history = Array.from({ length: BACKFILL_ROWS }, () =>
    newRow({ subscription_id: 7002, exported_at: '2026-11-01T00:00:00Z' }),
  );
  const backfill = { name: 'newswire.backfill-history.csv', content: contentOf('csv', history) };
  return files.toSpliced(10, 0, backfill);
}

/** A fixed URL: the appliance's own photo URLs are signed with each installation's secret. */
const PHOTO = { source_image_url: 'https://photos.example.org/1.jpg' };

function plannedMoments(): Moment[] {
  const short = fc.integer({ min: 60, max: 450 });
  const long = fc.integer({ min: 450, max: 1800 });
  const killMs = fc.oneof({ weight: 9, arbitrary: short }, { weight: 1, arbitrary: long });
  const few = fc.integer({ min: 0, max: 1 });
  return fc.sample(fc.record({ killMs, before: few, during: few }), { numRuns: KILLS, seed: SEED });
}

async function killOften(installation: Installation, files: readonly PlannedFile[]): Promise<Follower> {
  const follower = new Follower(installation);
  const waiting = [...files];
  const put = (count: number) => {
    for (const { name, content } of waiting.splice(0, count)) putFile(installation.drop, name, content);
  };
  mkdirSync(installation.drop, { recursive: true });
  for (const { killMs, before, during } of plannedMoments()) {
    put(before);
    const starting = installation.begin();
    const following = starting.listening().then(
      (url) => follower.follow(url, () => false),
      () => {},
    );
    await sleep(killMs / 2);
    put(during);
    await sleep(killMs / 2);
    await starting.kill();
    await following;
    assert.deepEqual(
      starting.log.filter(isErrorLine),
      [],
      'an earlier crash must not cause errors in the log',
    );
  }
  put(waiting.length);
  return follower;
}

/** Waits until the appliance is idle and the follower is at the end of the stream. */
async function followToTheEnd(
  installation: Installation,
  files: readonly PlannedFile[],
  follower: Follower,
): Promise<void> {
  const serving = await installation.serve();
  const isDone = () =>
    archivedFiles(installation).length === files.length &&
    readdirSync(join(installation.drop, '.taken')).length === 0;
  const deadline = performance.now() + TIMEOUT_MS;
  while (!isDone() && performance.now() < deadline) await sleep(20);
  await follower.follow(serving.url, () => true);
  assert.equal(await serving.stop(), 0);
}

/** A client that stores rows and cursor together, and continues from them after each crash. */
class Follower {
  readonly rows: Detection[] = [];
  readonly #installation: Installation;
  readonly #since = new Date(Date.now() - 1000).toISOString();
  #cursor: string | null = null;
  #position = 0;

  constructor(installation: Installation) {
    this.#installation = installation;
  }

  /** Reads until `endsWhenCaughtUp` at the end of the stream, or until the appliance is killed. */
  async follow(url: string, endsWhenCaughtUp: () => boolean): Promise<void> {
    const cursors = createStreamCursors(readFileSync(join(this.#installation.data, 'secret')));
    for (;;) {
      const start = this.#cursor === null ? `since=${this.#since}` : `cursor=${this.#cursor}`;
      const page = await this.#read(`${url}/v1/detections/changes?${start}&limit=1000`);
      if (page === null) {
        assert.ok(!endsWhenCaughtUp(), 'the appliance was killed');
        return;
      }
      const { position } = cursors.decode(page.next_cursor);
      assert.ok(position >= this.#position, 'positions must not go back');
      if (page.data.length > 0) assert.ok(position > this.#position, 'positions must be unique');
      this.#position = position;
      this.#cursor = page.next_cursor;
      this.rows.push(...page.data);
      if (page.has_more) continue;
      if (endsWhenCaughtUp()) return;
      await sleep(5);
    }
  }

  /** @returns null if the appliance was killed before its response */
  async #read(url: string): Promise<{ data: Detection[]; next_cursor: string; has_more: boolean } | null> {
    let status: number;
    let body: string;
    try {
      const response = await fetch(url, { headers: { authorization: `Bearer ${this.#installation.key}` } });
      status = response.status;
      body = await response.text();
      // The database is being updated from the log: clients retry.
      if (status === 500 && response.headers.has('retry-after')) {
        await sleep(50);
        return this.#read(url);
      }
    } catch {
      return null;
    }
    assert.equal(status, 200, body);
    return JSON.parse(body);
  }
}

function archivedFiles({ drop }: Installation): string[] {
  const archive = join(drop, 'archive');
  return readdirSync(archive).flatMap((day) =>
    readdirSync(join(archive, day)).map((name) => join(archive, day, name)),
  );
}

/** Every dropped file must be in the archive once, and no file anywhere else. */
function checkFolder(installation: Installation, files: readonly PlannedFile[]): void {
  const { drop } = installation;
  const archived = new Map(archivedFiles(installation).map((path) => [basename(path), path]));
  assert.equal(archived.size, files.length);
  for (const { name, content } of files) {
    const path = archived.get(name);
    assert.ok(path !== undefined, `${name} is in the archive`);
    assert.ok(readFileSync(path).equals(content), name);
  }
  for (const folder of ['failed', 'refused', '.taken']) assert.deepEqual(readdirSync(join(drop, folder)), []);
  assert.deepEqual(readdirSync(drop).sort(), ['.taken', 'archive', 'failed', 'refused']);
}

/** The log must name each file once, windows in order, and positions must not go back. */
function checkLog({ data }: Installation, files: readonly PlannedFile[]): void {
  const applied = loggedFiles(data).filter(({ outcome }) => outcome === 'applied');
  const names = applied.map(({ destination }) => basename(destination ?? ''));
  const isWindow = (name: string) => !name.includes('backfill');
  assert.deepEqual(names.toSorted(), files.map(({ name }) => name).toSorted());
  assert.deepEqual(names.filter(isWindow), files.map(({ name }) => name).filter(isWindow));
  assert.equal(new Set(applied.map(({ number }) => number)).size, files.length);
  for (const { destination, sha256 } of applied) {
    const file = files.find(({ name }) => name === basename(destination ?? ''));
    assert.equal(
      sha256,
      createHash('sha256')
        .update(file?.content ?? '')
        .digest('hex'),
    );
  }
  const positions = loggedPositions(data);
  assert.deepEqual(
    positions,
    positions.toSorted((a, b) => a - b),
  );
}

/** The rows of each stream, in the order of reading. */
function streamsOf(rows: readonly Detection[]): Map<string, Detection[]> {
  const streams = Map.groupBy(rows, (row) => `${row.subscription_id}:${row.content_type}`);
  return new Map([...streams].sort(([one], [other]) => (one < other ? -1 : 1)));
}
