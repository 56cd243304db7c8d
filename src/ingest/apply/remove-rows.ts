/**
 * Deletes the rows of removed subscriptions: detections, then their versions, then their rows in the log. By then no client
 * sees them and no row for them is accepted.
 *
 * The log records the removal once, before the first row goes. There may be millions of rows, so they go in bounded
 * transactions without log entries, and waiting windows are read in between. After a crash it starts again with the rows
 * that are left. `stream` keeps its row of a removed stream, so that positions and ordinals are never reused.
 */
import { closeRemovals, openRemovals } from '../../auth/removal.ts';
import { counted } from '../../counted.ts';
import { endedStreams } from '../../history/detection-rows.ts';
import { isLogError } from '../../history/log-error.ts';
import { notePurged, purgedStreams, purgeLog } from '../../history/purge.ts';
import { reasonOf } from '../../refused.ts';
import { type Database, writing } from '../../store/database.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { placesOf } from '../../store/stream-place.ts';
import { isFileError } from '../file-errors.ts';
import type { Log, SetCondition } from '../reporting.ts';
import type { AccessConnection } from '../threads/access-connection.ts';
import type { StreamWriter } from './stream-writer.ts';

/** Rows that one transaction deletes: at most half a second of work. A quarter of it would double the total time. */
const ROWS_MAX = 10_000;

export const DELETE_DETECTIONS = `
  DELETE FROM detection WHERE id IN (SELECT id FROM detection WHERE place >> 34 = :ordinal LIMIT :limit)`;

export const DELETE_RESCORED = `
  DELETE FROM rescored
  WHERE place IN (SELECT place FROM rescored WHERE place >= :first AND place < :end ORDER BY place LIMIT :limit)`;

export const DELETE_STREAM_ROWS = `
  DELETE FROM stream_row
  WHERE place IN (SELECT place FROM stream_row WHERE place >= :first AND place < :end ORDER BY place LIMIT :limit)`;

export const COUNT_DETECTIONS = 'SELECT count(*) AS count FROM detection WHERE place >> 34 = :ordinal';
const SELECT_STREAMS = 'SELECT ordinal, sequence, removed FROM stream WHERE subscription_id = :subscription';

interface Stream {
  readonly ordinal: number;
  readonly sequence: number;
  readonly removed: number;
}

export interface RemovedRows {
  readonly detections: number;
  readonly versions: number;
}

/** How many rows subscriptions have. @param db may be a reader */
export function countRows(db: Database, subscriptions: readonly number[]): RemovedRows {
  const select = db.prepare<unknown[], Stream>(SELECT_STREAMS);
  const count = db.prepare<unknown[], { count: number }>(COUNT_DETECTIONS);
  const rows = { detections: 0, versions: 0 };
  for (const subscription of subscriptions) {
    for (const { ordinal, sequence, removed } of select.all({ subscription })) {
      rows.detections += count.get({ ordinal })?.count ?? 0;
      rows.versions += removed === 1 ? 0 : sequence;
    }
  }
  return rows;
}

/** What long work calls between its steps. */
export interface LongWork {
  /** Lets more urgent work run. @throws Stopping when the thread is to end */
  readonly between: () => Promise<void>;
  /** @param progress in words */
  readonly tell: (progress: string) => void;
}

export async function removeSubscription(
  writer: StreamWriter,
  subscription: number,
  work: LongWork,
): Promise<RemovedRows> {
  const { db } = writer;
  writer.applyPending();
  // First the log ends the streams: from then on they have no name, and nobody reads them.
  const streams = db.prepare<unknown[], Stream>(SELECT_STREAMS).all({ subscription });
  if (streams.some(({ removed }) => removed === 0)) {
    const applier = writer.begin();
    applier.removeSubscription(subscription);
    writer.commit(applier, { kind: 'remove', subscription });
  }
  return deleteRows(db, endedStreams(db, subscription), work);
}

/**
 * Completes the open removals, and closes them. After a crash in between, nothing is left to do but close them: a
 * subscription cannot be added as long as its removal is open.
 */
export async function serveRemovals(
  removals: Removals,
  work: LongWork,
): Promise<{ ok: true; removed: RemovedRows; left_in_log: string | null }> {
  const subscriptions = removals.access.use((access) => openRemovals(access));
  let removed: RemovedRows = { detections: 0, versions: 0 };
  for (const subscription of subscriptions) {
    const { detections, versions } = await removeSubscription(removals.writer, subscription, work);
    removed = { detections: removed.detections + detections, versions: removed.versions + versions };
  }
  const left_in_log = await finishRemovals(removals, work);
  if (subscriptions.length > 0) removals.access.useLogged((access) => closeRemovals(access, subscriptions));
  return { ok: true, removed, left_in_log };
}

export interface Removals {
  readonly access: AccessConnection;
  readonly writer: StreamWriter;
  /** The folder of the log. */
  readonly folder: string;
  readonly log: Log;
  readonly setCondition: SetCondition;
}

/**
 * Deletes the remaining rows of removed subscriptions from the database and the log: after a removal, and if a stop, a
 * restore or a full disk interrupted one.
 *
 * @returns why the log still has such rows; null if it has none
 */
export async function finishRemovals(
  { writer, folder, log, setCondition }: Omit<Removals, 'access'>,
  work: LongWork,
): Promise<string | null> {
  const { db } = writer;
  const ended = endedStreams(db);
  const purged = purgedStreams(folder);
  const left = ended.filter((ordinal) => !purged.has(ordinal));
  if (left.length === 0) return null;
  await deleteRows(db, left, work);
  writer.closeSegment();
  const { between, tell } = work;
  const onProgress = (done: number, total: number) =>
    tell(`removing rows from the log: segment ${done} of ${total}`);
  try {
    await purgeLog({ folder, between, onProgress });
  } catch (error) {
    if (!isLogError(error) && !isDiskFull(error) && !isFileError(error)) throw error;
    const detail = reasonOf(error);
    log('error', 'cannot delete the rows of removed subscriptions from the log: trying again in an hour', {
      detail,
    });
    setCondition('removal incomplete', detail);
    return detail;
  }
  notePurged(folder, ended);
  setCondition('removal incomplete', null);
  return null;
}

async function deleteRows(db: Database, ordinals: readonly number[], work: LongWork): Promise<RemovedRows> {
  // Otherwise the rows stay readable in the free space of the file (https://sqlite.org/pragma.html#pragma_secure_delete).
  db.pragma('secure_delete = ON');
  try {
    return await deleteInSteps(db, ordinals, work);
  } finally {
    db.pragma('secure_delete = OFF');
  }
}

async function deleteInSteps(
  db: Database,
  ordinals: readonly number[],
  { between, tell }: LongWork,
): Promise<RemovedRows> {
  const removed = { detections: 0, versions: 0 };
  for (const ordinal of ordinals) {
    const values = { ordinal, ...placesOf(ordinal), limit: ROWS_MAX };
    for (const [kind, sql] of STATEMENTS) {
      for (let rows = ROWS_MAX; rows === ROWS_MAX; ) {
        writing(db, () => {
          rows = db.prepare(sql).run(values).changes;
        });
        if (kind !== null) removed[kind] += rows;
        const { detections, versions } = removed;
        tell(`${counted(detections, 'detection')} and ${counted(versions, 'version')} removed`);
        await between();
      }
    }
  }
  return removed;
}

const STATEMENTS = [
  ['detections', DELETE_DETECTIONS],
  [null, DELETE_RESCORED],
  ['versions', DELETE_STREAM_ROWS],
] as const;
