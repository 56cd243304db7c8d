/**
 * Compares a copy with the service, without false differences for a correct client.
 *
 * It reads the periods again, page by page, and takes each row that it meets off a list of the copy: what is left, the
 * service does not have. The list is a temporary database, so that memory does not grow with the copy. Ignored are
 * `last_scored_at` and `exported_at`, which change without a new version, the address of the service in
 * `source.image_url`, and detections that changed after the last update of the copy. Those are on the stream after the
 * copy's cursor. The stream is read last, so it contains every change made meanwhile.
 */
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Database, openScratch } from '../../store/database.ts';
import { SECOND_MS } from '../../time.ts';
import { ChangesPage, type Detection, LIMIT, PeriodPage } from './api.ts';
import { type Copy, Step } from './copy.ts';
import {
  CHANGES,
  PERIOD,
  queryOf,
  readStreams,
  type Start,
  shownStep,
  stepsOf,
  streamName,
  type Work,
} from './procedures.ts';

export interface Comparison {
  /** Detections of the copy. */
  readonly detections: number;
  /** Detections that differ, but changed after the copy was updated. */
  readonly changed_since: number;
  /** Detections of streams that the key does not read, such as those of a removed subscription; they are not compared. */
  readonly not_read: { readonly detections: number; readonly streams: readonly string[] };
  readonly differences: readonly Difference[];
}

export interface Difference {
  readonly id: string;
  readonly kind: 'not in the copy' | 'not in the service' | 'other version' | 'other content';
  /** Null if it is missing. */
  readonly copy_version: number | null;
  readonly service_version: number | null;
}

/** The members that name the stream; the lines of another client may lack them. */
const OfStream = Type.Pick(Step, ['subscription_id', 'content_type']);
/** Captures an address of a photo without that of the service. */
const OWN_ADDRESS = /^.*(\/photos\/\d+\?signature=.*)$/;
const NOT_COMPARED = new Set(['event', 'last_scored_at', 'exported_at']);

/** The rows of the copy that the service has not returned yet; `state`: `due`, a period contains it by
 * now; `ahead`, not yet; `not_read`, the key does not read its stream. */
const SCHEMA = {
  application_id: 0x77770016,
  sql: `CREATE TABLE own (id TEXT PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL)
    STRICT, WITHOUT ROWID;`,
  synchronous: 'NORMAL',
} as const;
const UPSERT_OWN = `
  INSERT INTO own VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET version = excluded.version, state = excluded.state, digest = excluded.digest
  WHERE excluded.version >= own.version`;
const COUNT_OWN = 'SELECT count(*) FROM own';
const COUNT_NOT_READ = "SELECT count(*) FROM own WHERE state = 'not_read'";
const TAKE_OWN = 'DELETE FROM own WHERE id = ? RETURNING version, digest';
const SELECT_LEFT = "SELECT id, version FROM own WHERE state = 'due' ORDER BY id";

interface Own {
  readonly id: string;
  readonly version: number;
  /** SHA-256 of the compared members. */
  readonly digest: string;
}

/** @throws Refused `failed` for a copy or an answer that cannot be read */
export async function compareCopy({ api, copy, start, onPage }: Work): Promise<Comparison> {
  // Before the rows: a row that is newer than the cursor counts as changed.
  const { cursor } = copy.position();
  using list = openList();
  const { db } = list;
  const streams = await noteOwn(db, copy, start);
  const countOf = (sql: string) => db.prepare<[], number>(sql).pluck().get() ?? 0;
  const detections = countOf(COUNT_OWN);
  const not_read = { detections: countOf(COUNT_NOT_READ), streams };
  const take = db.prepare<[string], Omit<Own, 'id'>>(TAKE_OWN);
  const found = new Map<string, Difference>();
  const note = (id: string, kind: Difference['kind'], copied: number | null, served: number | null) =>
    found.set(id, { id, kind, copy_version: copied, service_version: served });
  for (const step of stepsOf(start))
    for await (const { body } of api.pages(PERIOD, PeriodPage, queryOf(step))) {
      for (const row of body.data) {
        const { id, version } = row;
        const copied = take.get(id);
        if (copied === undefined) note(id, 'not in the copy', null, version);
        else if (copied.version !== version) note(id, 'other version', copied.version, version);
        else if (copied.digest !== digestOf(row)) note(id, 'other content', version, version);
      }
      onPage(shownStep(step), body.data.length, 0);
    }
  for (const { id, version } of db.prepare<[], Omit<Own, 'digest'>>(SELECT_LEFT).all())
    note(id, 'not in the service', version, null);
  const begun = cursor === null ? { since: start.since } : { cursor };
  let changed_since = 0;
  const query = { ...begun, fields: 'id', limit: LIMIT };
  for await (const { body } of api.pages(CHANGES, ChangesPage, query))
    for (const { id } of body.data) if (found.delete(id)) changed_since += 1;
  return { detections, changed_since, not_read, differences: [...found.values()] };
}

/** Not beside the copy, whose folder may be read-only. */
function openList(): { readonly db: Database } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-compare-'));
  try {
    const db = openScratch(folder, SCHEMA);
    return { db, [Symbol.dispose]: () => void db.close() };
  } finally {
    // An open file needs no name.
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Lists the detections of the copy: the highest version of each. @returns the streams that the key does not read */
async function noteOwn(db: Database, copy: Copy, start: Start): Promise<string[]> {
  const upsert = db.prepare(UPSERT_OWN);
  const read = new Set(readStreams(start).map(streamName));
  const notRead = new Set<string>();
  for await (const row of copy.rows()) {
    // A period ends now; the clock of the matching system may be ahead.
    const isAhead = Date.parse(String(row.first_detected_at)) > start.dateMs - SECOND_MS;
    const stream = Value.Check(OfStream, row) ? streamName(row) : null;
    const isRead = stream === null || read.has(stream);
    if (!isRead) notRead.add(stream);
    upsert.run(row.id, row.version, isRead ? (isAhead ? 'ahead' : 'due') : 'not_read', digestOf(row));
  }
  return [...notRead].sort();
}

function digestOf(row: Detection): string {
  const compared = Object.fromEntries(Object.entries(row).filter(([name]) => !NOT_COMPARED.has(name)));
  return hash('sha256', JSON.stringify(compared, comparedValue));
}

/** Members in the order of their names: the lines of another client may have any. */
function comparedValue(name: string, value: unknown): unknown {
  if (name === 'image_url' && typeof value === 'string') return value.replace(OWN_ADDRESS, '$1');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
