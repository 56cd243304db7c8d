/**
 * `usage.db`: counts of the running appliance that may be lost. Rows read by day, which the start reads back; for each
 * key its last use, its networks and its position in the change stream; requests over time. The usage thread writes it.
 *
 * It is in no log and no backup. If the file cannot be used, the start renames it and creates a new one.
 */

import { renameSync, rmSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { type Database, emptied, isEmpty, openDatabase, writing } from '../store/database.ts';
import { DatabaseDamage, isDiskFull } from '../store/database-errors.ts';
import { isThere } from '../store/folder.ts';
import type { Schema } from '../store/schema.ts';
import { MINUTE_MS } from '../time.ts';
import { dayOf, type RowHolder, type UsedRows } from './daily-rows.ts';
import type { KeyUse } from './key-uses.ts';
import {
  MINUTES_KEPT,
  type MinuteCount,
  REFUSAL_DAYS_KEPT,
  type Refusals,
  type UnwrittenCounts,
} from './request-counts.ts';
import { SEEN_MAX, SEEN_MS, type SeenKey } from './seen-keys.ts';

/** What a start reads. */
export interface StoredUsage {
  readonly rows: readonly UsedRows[];
  /** Oldest first. */
  readonly seen: readonly SeenKey[];
}

/** The content of one write. */
export interface Usage {
  /** Counts that are new or have grown. */
  readonly counts: readonly UsedRows[];
  /** The days to keep; all others are deleted. */
  readonly days: readonly number[];
  /** Keys that were used since the last write. */
  readonly uses: readonly KeyUse[];
  /** Networks that proved a key since the last write. */
  readonly seen?: readonly SeenKey[];
  /** Requests that were counted since the last write. */
  readonly requests?: UnwrittenCounts;
}

export interface KeyUsage {
  /** Epoch milliseconds; null if no use is known. */
  readonly last_used_at: number | null;
  /** Rows read on this UTC day. */
  readonly rows_today: number;
  /** Of the last change stream cursor given to it; null: none. */
  readonly position: number | null;
}

const SQL = `
-- Requests and rows of each minute of the last day.
CREATE TABLE minute_count (
  -- Minutes since 1970-01-01.
  minute INTEGER NOT NULL,
  counted TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (minute, counted)
) STRICT, WITHOUT ROWID;

-- Requests of the last days that were refused, by the key that they named.
CREATE TABLE refusal (
  day INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  code TEXT NOT NULL,
  count INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (day, key_id, code)
) STRICT, WITHOUT ROWID;

-- How many rows each account and each key has read on a UTC day.
CREATE TABLE row_usage (
  -- Days since 1970-01-01.
  day INTEGER NOT NULL,
  holder TEXT NOT NULL CHECK (holder IN ('account', 'key')),
  -- Of a key, or of an account with its created_at: an account that is added again has used nothing.
  id TEXT NOT NULL,
  rows INTEGER NOT NULL,
  PRIMARY KEY (day, holder, id)
) STRICT, WITHOUT ROWID;

-- The networks from which each key was proven within a day.
CREATE TABLE key_network (
  key_id TEXT NOT NULL,
  network TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, network)
) STRICT, WITHOUT ROWID;

-- When each key was last used, epoch milliseconds, and the position of the cursor of the change stream that it was
-- given last.
CREATE TABLE key_use (
  key_id TEXT PRIMARY KEY,
  last_used_at INTEGER NOT NULL,
  position INTEGER
) STRICT, WITHOUT ROWID;
`;

const USAGE_SCHEMA: Schema = { application_id: 0x77770015, sql: SQL, synchronous: 'NORMAL' };

const SELECT_USED_ROWS = 'SELECT day, holder, id, rows FROM row_usage';

const UPSERT_USED_ROWS = `
  INSERT INTO row_usage (day, holder, id, rows) VALUES (:day, :holder, :id, :rows)
  ON CONFLICT (day, holder, id) DO UPDATE SET rows = excluded.rows`;

const UPSERT_KEY_USE = `
  INSERT INTO key_use (key_id, last_used_at, position) VALUES (:key_id, :last_used_at, :position)
  ON CONFLICT (key_id) DO UPDATE SET
    last_used_at = excluded.last_used_at, position = coalesce(excluded.position, position)`;

const SELECT_KEY_USES = 'SELECT key_id, last_used_at, position FROM key_use';

const SELECT_SEEN = 'SELECT key_id, network, seen_at FROM key_network ORDER BY seen_at';

const UPSERT_SEEN = `
  INSERT INTO key_network (key_id, network, seen_at) VALUES (:key_id, :network, :seen_at)
  ON CONFLICT (key_id, network) DO UPDATE SET seen_at = excluded.seen_at`;

/** Also deletes what is beyond the number that is kept in memory. */
const DELETE_SEEN = `
  DELETE FROM key_network WHERE seen_at <= :seen_at - ${SEEN_MS} OR seen_at > :seen_at + ${SEEN_MS}
    OR seen_at <= (SELECT seen_at FROM key_network ORDER BY seen_at DESC LIMIT 1 OFFSET ${SEEN_MAX})`;

const SELECT_ROWS_OF_DAY = 'SELECT id, rows FROM row_usage WHERE holder = :holder AND day = :day';

const UPSERT_MINUTE = `
  INSERT INTO minute_count (minute, counted, count) VALUES (:minute, :counted, :count)
  ON CONFLICT (minute, counted) DO UPDATE SET count = count + excluded.count`;

/** Also deletes minutes in the future, from a clock that was ahead. */
const DELETE_MINUTES = 'DELETE FROM minute_count WHERE minute <= :minute - :kept OR minute > :minute + :kept';

const UPSERT_REFUSALS = `
  INSERT INTO refusal (day, key_id, code, count, last_at) VALUES (:day, :key_id, :code, :count, :last_at)
  ON CONFLICT (day, key_id, code) DO UPDATE SET
    count = count + excluded.count, last_at = max(last_at, excluded.last_at)`;

const DELETE_REFUSALS = 'DELETE FROM refusal WHERE day <= :day - :kept OR day > :day + :kept';

const SELECT_MINUTES =
  'SELECT minute, counted, count FROM minute_count WHERE minute > :after AND minute <= :through';

const SELECT_REFUSALS = `
  SELECT key_id, code, sum(count) AS count, max(last_at) AS last_at FROM refusal GROUP BY key_id, code
  ORDER BY count DESC, code`;

const DELETE_DAYS = 'DELETE FROM row_usage WHERE day NOT IN (SELECT value FROM json_each(:days))';

/** Created if missing. Commits do not wait for the disk: a power failure may lose the last writes. */
export function openUsage(path: string): Database {
  const db = openDatabase(path, 'write', USAGE_SCHEMA);
  db.pragma('synchronous = NORMAL');
  return db;
}

/**
 * The usage of earlier runs.
 *
 * @param onUnusable called with the reason if the file is not used; on a full disk it is not renamed
 */
export function readUsageAtStart(path: string, onUnusable: (reason: string) => void): StoredUsage {
  try {
    if (isEmpty(path)) throw emptied(path);
    using db = openUsage(path);
    const found = db.pragma('quick_check(1)', { simple: true });
    if (found !== 'ok') throw new DatabaseDamage(String(found));
    // Checks that the other tables exist: without them every write would fail.
    for (const sql of [SELECT_KEY_USES, SELECT_MINUTES, SELECT_REFUSALS]) db.prepare(sql);
    return { rows: readUsedRows(db), seen: db.prepare<[], SeenKey>(SELECT_SEEN).all() };
  } catch (error) {
    // The advice of a Refused is for databases that must not be lost.
    onUnusable(
      error instanceof Refused
        ? 'it is empty, belongs to another program, or has another schema'
        : reasonOf(error),
    );
    if (!isDiskFull(error)) setAside(path);
    return { rows: [], seen: [] };
  }
}

/** Renames instead of deleting: the file may belong to another program. SQLite would apply a leftover -wal to the new file. */
function setAside(path: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) {
    rmSync(`${path}.damaged${end}`, { recursive: true, force: true });
    if (isThere(`${path}${end}`)) renameSync(`${path}${end}`, `${path}.damaged${end}`);
  }
}

export function readUsedRows(db: Database): UsedRows[] {
  return db.prepare<[], UsedRows>(SELECT_USED_ROWS).all();
}

/**
 * The use of the keys, read by other processes while the appliance writes every second.
 *
 * @returns null if the file cannot be read, which must not fail a command; empty if it does not exist yet
 */
export function readKeyUsage(path: string, nowMs: number): ReadonlyMap<string, KeyUsage> | null {
  return inspect<ReadonlyMap<string, KeyUsage>>(path, new Map(), (db) => {
    const today = rowsOfDay(db, 'key', nowMs);
    const uses = db.prepare<[], KeyUse>(SELECT_KEY_USES).all();
    return new Map(
      uses.map(({ key_id, ...use }) => [key_id, { ...use, rows_today: today.get(key_id) ?? 0 }]),
    );
  });
}

/** Rows that each account has read on this UTC day, by {@link accountUsageId}; as {@link readKeyUsage}. */
export function readAccountRows(path: string, nowMs: number): ReadonlyMap<string, number> | null {
  return inspect<ReadonlyMap<string, number>>(path, new Map(), (db) => rowsOfDay(db, 'account', nowMs));
}

function rowsOfDay(db: Database, holder: RowHolder, nowMs: number): ReadonlyMap<string, number> {
  const rows = db.prepare<unknown[], { id: string; rows: number }>(SELECT_ROWS_OF_DAY);
  return new Map(rows.all({ holder, day: dayOf(nowMs) }).map(({ id, rows }) => [id, rows]));
}

export interface RequestHistory {
  readonly minutes: readonly MinuteCount[];
  /** Of the last seven days, the most frequent first. */
  readonly refusals: readonly Omit<Refusals, 'day'>[];
}

/** As {@link readKeyUsage}. */
export function readRequestHistory(path: string, nowMs: number): RequestHistory | null {
  return inspect<RequestHistory>(path, { minutes: [], refusals: [] }, (db) => {
    const through = Math.floor(nowMs / MINUTE_MS);
    const minutes = db.prepare<unknown[], MinuteCount>(SELECT_MINUTES);
    const refusals = db.prepare<unknown[], Omit<Refusals, 'day'>>(SELECT_REFUSALS);
    return { minutes: minutes.all({ after: through - MINUTES_KEPT, through }), refusals: refusals.all() };
  });
}

function inspect<Result>(path: string, none: Result, read: (db: Database) => Result): Result | null {
  if (!isThere(path)) return none;
  try {
    using db = openDatabase(path, 'inspect');
    return read(db);
  } catch {
    return null;
  }
}

export function writeUsage(db: Database, { counts, days, uses, seen = [], requests }: Usage): void {
  writing(db, () => {
    const note = db.prepare(UPSERT_KEY_USE);
    for (const use of uses) note.run(use);
    const upsert = db.prepare(UPSERT_USED_ROWS);
    for (const count of counts) upsert.run(count);
    const mark = db.prepare(UPSERT_SEEN);
    for (const one of seen) mark.run(one);
    const newest = seen.at(-1);
    if (newest !== undefined) db.prepare(DELETE_SEEN).run({ seen_at: newest.seen_at });
    db.prepare(DELETE_DAYS).run({ days: JSON.stringify(days) });
    if (requests !== undefined) writeRequests(db, requests);
  });
}

function writeRequests(db: Database, { minutes, refusals }: UnwrittenCounts): void {
  const minute = db.prepare(UPSERT_MINUTE);
  for (const count of minutes) minute.run(count);
  const refusal = db.prepare(UPSERT_REFUSALS);
  for (const refused of refusals) refusal.run(refused);
  const newestMinute = Math.max(...minutes.map((count) => count.minute));
  if (minutes.length > 0) db.prepare(DELETE_MINUTES).run({ minute: newestMinute, kept: MINUTES_KEPT });
  const newestDay = Math.max(...refusals.map(({ day }) => day));
  if (refusals.length > 0) db.prepare(DELETE_REFUSALS).run({ day: newestDay, kept: REFUSAL_DAYS_KEPT });
}
