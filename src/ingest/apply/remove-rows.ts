/**
 * Deletes what is there of subscriptions that were removed: detections, then their versions, then their rows in the log.
 * By then no client sees them and no row of theirs is taken.
 *
 * The log says it once, before the first row goes. It may be millions of rows, so they go in bounded transactions that
 * the log need not repeat, and windows that wait get their turn in between. After a crash it is begun again and finds
 * what is left. Positions and ordinals are not given out again: what `stream` says of a stream that was removed stays.
 */
import { counted } from '../../counted.ts';
import { endedStreams } from '../../history/detection-rows.ts';
import type { Operation } from '../../history/format.ts';
import { isLogError } from '../../history/log-error.ts';
import { notePurged, purgedStreams, purgeLog } from '../../history/purge.ts';
import { reasonOf } from '../../refused.ts';
import { type Database, writing } from '../../store/database.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { placesOf } from '../../store/stream-place.ts';
import { isFileError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';

/** Rows that one transaction deletes: half a second of work at most; a quarter of it would take twice as long in all. */
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

/** How much there is of subscriptions. @param db a reader will do */
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

/** What it takes to delete. */
type Place = Pick<Workshop, 'db' | 'writer' | 'between'>;
type Tell = (progress: string) => void;

/**
 * @param operation what the log says of it
 * @param tell how far it is, in words
 */
export async function removeSubscription(
  place: Place,
  subscription: number,
  operation: Operation,
  tell: Tell,
): Promise<RemovedRows> {
  const { db, writer } = place;
  writer.applyPending();
  // The log first, and with it the streams: from then on they have no name, and nobody reads them.
  const streams = db.prepare<unknown[], Stream>(SELECT_STREAMS).all({ subscription });
  if (streams.some(({ removed }) => removed === 0)) {
    const applier = writer.begin();
    applier.removeSubscription(subscription);
    writer.commit(applier, operation);
  }
  return deleteRows(place, endedStreams(db, subscription), tell);
}

/**
 * Takes rows out of the log, and what is left of them out of the database, as far as that was not done yet: after a
 * removal, and where a stop, a restore or a full disk came before its end.
 *
 * @returns why the log still has such rows; null where it has none
 */
export async function finishRemovals(
  place: Place & Pick<Workshop, 'folder' | 'log' | 'trouble'>,
  tell: Tell = () => {},
): Promise<string | null> {
  const { db, writer, between, folder, log, trouble } = place;
  const ended = endedStreams(db);
  const purged = purgedStreams(folder.log);
  const left = ended.filter((ordinal) => !purged.has(ordinal));
  if (left.length === 0) return null;
  await deleteRows(place, left, tell);
  writer.closeSegment();
  const onProgress = (done: number, total: number) =>
    tell(`removing rows from the log: segment ${done} of ${total}`);
  try {
    await purgeLog({ folder: folder.log, between, onProgress });
  } catch (error) {
    if (!isLogError(error) && !isDiskFull(error) && !isFileError(error)) throw error;
    const detail = reasonOf(error);
    log('error', 'cannot delete the rows of removed subscriptions from the log: trying again in an hour', {
      detail,
    });
    trouble('removal incomplete', detail);
    return detail;
  }
  notePurged(folder.log, ended);
  trouble('removal incomplete', null);
  return null;
}

async function deleteRows(
  { db, between }: Place,
  ordinals: readonly number[],
  tell: Tell,
): Promise<RemovedRows> {
  // SQLite leaves what was deleted in the free space of its file otherwise (https://sqlite.org/pragma.html#pragma_secure_delete).
  db.pragma('secure_delete = ON');
  try {
    return await deleteInSteps(db, between, ordinals, tell);
  } finally {
    db.pragma('secure_delete = OFF');
  }
}

async function deleteInSteps(
  db: Database,
  between: Place['between'],
  ordinals: readonly number[],
  tell: Tell,
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
        tell(
          `${counted(removed.detections, 'detection')} and ${counted(removed.versions, 'version')} removed`,
        );
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
