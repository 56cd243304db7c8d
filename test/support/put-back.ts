/**
 * An installation whose databases are put back by hand, and a client that follows its stream before, across and
 * after: what it must find is what it knew.
 */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { surveyJournal } from '../../src/ingest/survey.ts';
import { openReader } from '../../src/store/database.ts';
import { DAY_MS, formatMs } from '../../src/time.ts';
import type { Detection, Installation, LogLine, Serving } from './appliance.ts';

const PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 20;

export const OLDER = 'the database is older than the journal: what it lacks is done again';
export const CAUGHT_UP = 'the database has caught up with the journal';
export const RAISED = 'versions are raised by 1,000: that they come out as clients know them is not proven';

const FILES_OF = {
  detections: ['detections.db', 'detections.db-wal', 'detections.db-shm'],
  access: ['access.db', 'access.db-wal', 'access.db-shm'],
};

/** Copies a database with its log, as an operator would; the appliance may run. @returns the copy's folder */
export function copyDatabase(
  { data }: Installation,
  which: keyof typeof FILES_OF,
  name: string = which,
): string {
  const folder = join(data, '..', 'copies', name);
  mkdirSync(folder, { recursive: true });
  for (const file of FILES_OF[which]) {
    // Not copyFileSync(): where the log is cut off meanwhile, that tries for ever.
    if (existsSync(join(data, file)) && !file.endsWith('-shm'))
      writeFileSync(join(folder, file), readFileSync(join(data, file)));
  }
  return folder;
}

/** Puts a copy in the place of the database; the appliance must not run. */
export function putBack({ data }: Installation, which: keyof typeof FILES_OF, copy: string): void {
  for (const file of FILES_OF[which]) {
    rmSync(join(data, file), { force: true });
    if (existsSync(join(copy, file))) copyFileSync(join(copy, file), join(data, file));
  }
}

/** The lines of the journal. */
export function journalOf({ data }: Installation): Record<string, unknown>[] {
  const text = readFileSync(join(data, 'journal'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Waits until nothing is left to be ingested, and everything that was lies where it belongs. */
export async function atRest(
  installation: Pick<Installation, 'data' | 'drop'>,
  serving: Serving,
): Promise<void> {
  const waits = (name: string) => /^(newswire|imagewire)\./.test(name);
  // In the order in which a file goes through them, or one could be overtaken.
  const isBusy = () =>
    isBehind(installation) ||
    readdirSync(installation.drop).some(waits) ||
    readdirSync(join(installation.drop, '.taken')).length > 0;
  const deadline = performance.now() + PATIENCE_MS;
  while (isBusy()) {
    if (performance.now() > deadline)
      throw new Error(
        `it does not come to rest; its log:\n${serving.log.map((line) => JSON.stringify(line)).join('\n')}`,
      );
    await sleep(LOOK_EVERY_MS);
  }
  // What was logged until now has been read when the line of a request that was made now has been.
  const id = (await serving.get('/v1/health')).headers.get('x-request-id');
  await serving.logged('that it was asked', ({ request_id }) => request_id === id);
}

/** Whether the database lacks something of the journal, or a backfill is not at its end. */
function isBehind({ data }: Pick<Installation, 'data'>): boolean {
  const db = openReader(join(data, 'detections.db'));
  try {
    const isApplying = db.prepare("SELECT 1 FROM ingest_file WHERE outcome = 'applying'").get() !== undefined;
    return isApplying || surveyJournal(db, join(data, 'journal')).kind !== 'even';
  } finally {
    db.close();
  }
}

export function logged(log: readonly LogLine[], msg: string): LogLine[] {
  return log.filter((line) => line.msg === msg);
}

/** A client that keeps every version it was ever given, and refuses what contradicts it. */
export class Client {
  /** What it shows: the newest version of each detection. */
  readonly known = new Map<string, Detection>();
  readonly #versions = new Map<string, string>();
  readonly #key: string;
  readonly #since = formatMs(Date.now() - 60_000);
  #cursor: string | null = null;
  /** Rows that it was given that were of versions it had already. */
  repeated = 0;

  constructor(key: string) {
    this.#key = key;
  }

  /** Reads on to the end of the stream. */
  async follow(url: string): Promise<void> {
    for (;;) {
      const start = this.#cursor === null ? `since=${this.#since}` : `cursor=${this.#cursor}`;
      const page = await this.#get(`${url}/v1/detections/changes?${start}&limit=1000`);
      for (const row of page.data) this.#take(row);
      this.#cursor = page.next_cursor;
      if (!page.has_more) return;
    }
  }

  /** Everything that the period endpoint shows, by id. */
  async walk(url: string): Promise<Map<string, Detection>> {
    const all = new Map<string, Detection>();
    for (const subscription of [7001, 7002]) {
      const times = [...this.known.values()]
        .filter(({ subscription_id }) => subscription_id === subscription)
        .map(({ first_detected_at }) => first_detected_at);
      if (times.length === 0) continue;
      const period = `from=${times.sort()[0]}&to=${formatMs(Date.now() + DAY_MS)}`;
      const query = `${period}&subscription_id=${subscription}&limit=200`;
      let page = await this.#get(`${url}/v1/detections?${query}`);
      for (;;) {
        for (const row of page.data) all.set(row.id, row);
        if (!page.has_more) break;
        page = await this.#get(`${url}/v1/detections?${query}&cursor=${page.next_cursor}`);
      }
    }
    return all;
  }

  #take(row: Detection): void {
    const key = `${row.id} ${row.version}`;
    const text = JSON.stringify(row);
    const before = this.#versions.get(key);
    if (before !== undefined) {
      assert.equal(text, before, 'a version has one content');
      this.repeated += 1;
    }
    this.#versions.set(key, text);
    const known = this.known.get(row.id);
    if (known === undefined || known.version < row.version) this.known.set(row.id, row);
    else assert.ok(before !== undefined, `${key}: a version that is older than what is known was known`);
  }

  async #get(url: string): Promise<{ data: Detection[]; next_cursor: string | null; has_more: boolean }> {
    const response = await fetch(url, { headers: { authorization: `Bearer ${this.#key}` } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  }
}

/** What raises the version, and the version. */
export function shown(detections: ReadonlyMap<string, Detection>): Map<string, unknown> {
  return new Map(
    [...detections]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, detection]) => {
        const { event: _, last_scored_at: __, exported_at: ___, ...visible } = detection;
        return [id, visible];
      }),
  );
}

/** One by one, for the same reason as {@link assertSameContent}. */
export function assertSameShown(
  actual: ReadonlyMap<string, Detection>,
  expected: ReadonlyMap<string, Detection>,
  what: string,
): void {
  const [is, shouldBe] = [shown(actual), shown(expected)];
  for (const [id, detection] of shouldBe) assert.deepEqual(is.get(id), detection, `${what}: ${id}`);
  assert.equal(is.size, shouldBe.size, what);
}

/** Row by row: a difference of two whole databases is too long to read, and takes minutes to be found. */
export function assertSameContent(
  actual: ReturnType<typeof contentOfDatabase>,
  expected: ReturnType<typeof contentOfDatabase>,
  what = '',
): void {
  for (const [table, rows] of Object.entries(expected)) {
    for (const [at, row] of rows.entries())
      assert.deepEqual(actual[table]?.[at], row, `${what} ${table}, row ${at}`);
    assert.equal(actual[table]?.length, rows.length, `${what} ${table}`);
  }
}

/** Everything in a detections.db that must come out as it was; positions and times of delivery do not. */
export function contentOfDatabase({ data }: Installation): Record<string, unknown[]> {
  const db = openReader(join(data, 'detections.db'));
  try {
    const rows = (sql: string) => db.prepare(sql).all();
    return {
      detections: rows('SELECT * FROM detection ORDER BY id'),
      stream: rows('SELECT stream, sequence, body FROM stream_row ORDER BY position'),
      windows: rows('SELECT * FROM export_window ORDER BY export, window_start'),
      expectations: rows('SELECT export, expected_from FROM export_expectation ORDER BY export'),
      files: rows(
        `SELECT number, name, export, window_start, label, sha256, bytes, outcome, taken_at, finished_at,
           rows_applied, report, destination FROM ingest_file ORDER BY number`,
      ),
    };
  } finally {
    db.close();
  }
}
