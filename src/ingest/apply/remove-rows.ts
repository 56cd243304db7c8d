/**
 * Deletes the rows of removed subscriptions: detections, then their versions, then what is left of them in the file
 * (store/checkpoint.ts), then their rows in the log, by compaction (log/compact.ts). By then no client sees them and no row
 * for them is accepted.
 *
 * The log records the removal once, before the first row goes, in bounded transactions without log entries; waiting windows
 * are read in between. After a crash it starts again with what is left. `stream` keeps its row of a removed stream, so that
 * positions and ordinals are never reused.
 */
import { closeRemovals, openRemovals } from '../../auth/removal.ts';
import { now } from '../../clock.ts';
import { counted } from '../../counted.ts';
import { isFileError } from '../../drop/file-errors.ts';
import { compact, hasRemovedRows, inTurns, progressText, REMOVE } from '../../log/compact.ts';
import { deleteStream } from '../../log/detection-rows.ts';
import { paced } from '../../pace.ts';
import { failed, Refused, reasonIfRefused, reasonOf } from '../../refused.ts';
import { rewrite } from '../../store/checkpoint.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { isLogError } from '../../store/log-errors.ts';
import { readLogMark } from '../../store/log-mark.ts';
import { streamsOf } from '../../store/subscription-rows.ts';
import { HOUR_MS } from '../../time.ts';
import type { Ingest } from '../files/finished-file.ts';
import type { Tell } from '../threads/ingest-messages.ts';
import type { StreamWriter } from './stream-writer.ts';

/** Of the ended streams, which stay, only these cost time; most have had no rows for long. */
export const SELECT_ENDED_WITH_ROWS = `
  SELECT ordinal FROM stream
  WHERE removed = 1 AND (
    EXISTS (SELECT 1 FROM detection WHERE place >> 34 = stream.ordinal + 0)
    OR EXISTS (SELECT 1 FROM rescored WHERE place >= stream.ordinal << 34 AND place < stream.ordinal + 1 << 34)
    OR EXISTS (SELECT 1 FROM stream_row WHERE place >= stream.ordinal << 34 AND place < stream.ordinal + 1 << 34))
  ORDER BY ordinal`;

export type LongWork = Pick<Ingest, 'between'> & { readonly tell: Tell };

/**
 * Ends the streams of subscriptions in the log, and deletes the rows of these and of all that were ended before.
 * @returns why parts of them may still be in the file; null if they are not
 */
export async function removeRows(writer: StreamWriter, subscriptions: readonly number[], work: LongWork) {
  const { db } = writer;
  writer.applyPending();
  for (const subscription of subscriptions) {
    if (!streamsOf(db, subscription).some(({ removed }) => removed === 0)) continue;
    // From then on they have no name, and nobody reads them.
    const applier = writer.begin();
    // Within what a full disk takes back as a whole.
    writer.commit(applier, { kind: REMOVE, subscription }, () => applier.removeSubscription(subscription));
  }
  let deleted = 0;
  for (const ordinal of db.prepare<[], number>(SELECT_ENDED_WITH_ROWS).pluck().all())
    for (const rows of deleteStream(db, ordinal)) {
      deleted += rows;
      work.tell(`${counted(deleted, 'row')} deleted`);
      await work.between();
    }
  work.tell('writing detections.db anew');
  return rewrite(db);
}

/**
 * Completes all open removals with one compaction of the log, and closes them: until then a subscription cannot be added
 * again. It does the same for what a restored log has of removed rows.
 * @returns `left_in_log`: why log or database may still have such rows, and the removals stay open; null if they have none
 */
export async function serveRemovals(ingest: Ingest, tell: Tell) {
  const { access, writer, folder, log, setCondition, between } = ingest;
  const subscriptions = access.use(openRemovals);
  const hasRows = (ifDamaged: boolean) =>
    hasRemovedRows(folder.log, readLogMark(writer.db)?.entry ?? 0, ifDamaged);
  const isDue = subscriptions.length > 0 || hasRows(false);
  const left_in_file = isDue ? await removeRows(writer, subscriptions, { between, tell }) : null;
  // Where the log alone tells of a removal, it does so until all is done.
  const mayCompact = left_in_file === null || subscriptions.length > 0;
  const work = { between: inTurns(between), tell };
  const mustCompact = isDue && mayCompact && hasRows(true);
  const uncompacted = mustCompact ? await compactNow(ingest, work).then(() => null, reasonIfRefused) : null;
  const left_in_log = left_in_file ?? uncompacted;
  if (left_in_log !== null)
    log('error', 'cannot delete all that is left of removed subscriptions: trying again in an hour', {
      detail: left_in_log,
    });
  setCondition('removal incomplete', left_in_log);
  if (left_in_log === null && subscriptions.length > 0) access.use((db) => closeRemovals(db, subscriptions));
  return { left_in_log };
}

/** Completes removals that nobody asks for; what an attempt has left is tried again in an hour. */
export function removalRetries(ingest: Ingest) {
  const { access, log } = ingest;
  let tried = '';
  /** Monotonic. */
  let nextMs = 0;

  function noteTried(): void {
    tried = String(access.use(openRemovals));
    nextMs = performance.now() + paced(HOUR_MS);
  }

  async function run(tell: Tell): Promise<void> {
    // Whoever removed something may not wait for it, or be about to ask. The first time, a restored log is looked at.
    const open = String(access.use(openRemovals));
    if (open === tried && performance.now() < nextMs) return;
    const outcome = await serveRemovals(ingest, tell);
    if (open !== '' && outcome.left_in_log === null) log('info', 'removal completed', { outcome });
    noteTried();
  }

  return { noteTried, run };
}

/** @throws Refused `failed` with the reason if it cannot be done now */
export async function compactNow({ writer, folder }: Pick<Ingest, 'writer' | 'folder'>, work: LongWork) {
  const { between, tell } = work;
  writer.applyPending();
  writer.closeSegment();
  const onProgress = (what: string, done: number, total: number) => tell(progressText(what, done, total));
  try {
    return await compact({ folder, nowMs: now(), between, onProgress });
  } catch (error) {
    const isExpected =
      error instanceof Refused || isLogError(error) || isDiskFull(error) || isFileError(error);
    throw isExpected ? failed(reasonOf(error)) : error;
  }
}
