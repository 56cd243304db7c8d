/**
 * The state that a restore puts in place, built in a separate folder: the logs of the backup, continued by those of the
 * data folder if they continue the backup, and the databases that are built from them.
 *
 * The databases are built here, and not at the next start, because only that proves that the logs can be applied: until
 * then the old state is not touched. It also shows which positions and versions were given out.
 */

import { existsSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { endConsoleSessions } from '../auth/console-sessions.ts';
import { isObject, type LogKind, type Mark, parse } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { entriesAfter, findTail } from '../history/log-reader.ts';
import { openAccess } from '../history/open-access.ts';
import { recoverDetections } from '../history/recover.ts';
import { bytesOf, listSegments, logFolder } from '../history/segment.ts';
import { lastPosition } from '../ingest/apply/apply-rows.ts';
import { type Epoch, StreamWriter } from '../ingest/apply/stream-writer.ts';
import { orphanedFiles } from '../ingest/drop/orphaned.ts';
import { Refused } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { checkpointNoted } from '../store/file-identity.ts';
import { type DataFolder, syncFile } from '../store/folder.ts';
import { formatMs, type Now, parseInstant } from '../time.ts';
import { VERSION } from '../version.ts';
import { continueLog, copyLog } from './log-copy.ts';
import { loadSource, type Source } from './source.ts';

export interface NewStateOptions {
  readonly source: Source;
  /** A new folder, in which the state is built. */
  readonly stage: DataFolder;
  /** The folder whose logs may continue the backup; null: none. */
  readonly live: DataFolder | null;
  readonly drop: string;
  /** Epoch milliseconds: what was written to the log of detections after it is cut off; null: nothing. */
  readonly untilMs: number | null;
  readonly now: Now;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface NewState {
  /** When the backup was last updated; null if that is not known, as for a data folder. */
  readonly backed_up_at: string | null;
  /** When the last entry of the log of detections was written; null: it has none. */
  readonly state_of: string | null;
  readonly detections: number;
  readonly stream_rows: number;
  readonly accounts: number;
  readonly keys: number;
  /** Whether the log of the data folder continued that of the backup. */
  readonly log: 'continued' | 'from the backup';
  readonly access_log: 'continued' | 'from the backup';
  /** Entries that were cut off. */
  readonly entries_cut: number;
  /** Whether versions were raised and positions moved ahead, because the end of the log is or may be lost. */
  readonly raised: boolean;
  /** Files in the archive without a record. */
  readonly orphans: readonly string[];
}

const COUNTS = `
  SELECT (SELECT count(*) FROM detection) AS detections, (SELECT count(*) FROM stream_row) AS stream_rows`;
const ACCESS_COUNTS = `
  SELECT (SELECT count(*) FROM account) AS accounts, (SELECT count(*) FROM api_key) AS keys`;

const COUNT_EPOCHS = 'SELECT count(*) AS epochs FROM version_epoch';

/** @throws Refused `failed`, LogDamage: the text follows the name of the backup */
export async function makeNewState(options: NewStateOptions): Promise<NewState> {
  const { source, stage, live, untilMs, onProgress } = options;
  const ends = await loadSource(source, stage, onProgress);
  const isContinued = live !== null && continuesLog(live, stage, 'detections', ends.log);
  const isAccessContinued = live !== null && continuesLog(live, stage, 'access', ends.accessLog);
  const cut = untilMs === null ? NOTHING_CUT : cutLog(stage.log, untilMs);
  const ofAccess = makeAccess(stage, isAccessContinued ? null : options.now());
  const lost = untilMs !== null ? 'until' : isContinued ? null : 'backup';
  const replaced = isContinued || live === null ? null : replacedHistory(live, options);
  const made = await makeDetections(options, lost, cut, replaced);
  return {
    backed_up_at: ends.at,
    ...made,
    ...ofAccess,
    log: isContinued ? 'continued' : 'from the backup',
    access_log: isAccessContinued ? 'continued' : 'from the backup',
    entries_cut: cut.entries,
    raised: lost !== null,
  };
}

/** Continues the new log with that of the data folder. @param end null: the log of the backup is empty */
function continuesLog(live: DataFolder, stage: DataFolder, kind: LogKind, end: Mark | null): boolean {
  const [from, to] = [logFolder(live, kind), logFolder(stage, kind)];
  if (end !== null) return continueLog(from, to, kind, end);
  // Every log continues an empty one; the secret tells whether it is of the same installation.
  if (!existsSync(live.secret) || !readFileSync(live.secret).equals(readFileSync(stage.secret))) return false;
  try {
    copyLog({ from, to, kind, end: findTail(from, kind).last, aside: stage.root });
    return true;
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
    rmSync(to, { recursive: true, force: true });
    return false;
  }
}

/** Facts of the part of the backup's history that is discarded. */
interface Cut {
  readonly entries: number;
  /** The last position that it gave out. */
  readonly position: number;
  /** Version epochs in it. */
  readonly epochs: number;
}

/** Facts of the data folder's own history, if it does not continue that of the backup. */
interface Replaced {
  /** The last position that both histories have; infinite: the backup ends before they part. */
  readonly parted: number;
  /** The last position that it gave out. */
  readonly position: number;
  /** All its version epochs. */
  readonly epochs: number;
}

const NOTHING_CUT: Cut = { entries: 0, position: 0, epochs: 0 };

/** Truncates a log after the last entry that was written at or before a time. */
function cutLog(log: string, untilMs: number): Cut {
  let kept: { readonly path: string; readonly end: number; readonly mark: Mark } | null = null;
  for (const { segment, part } of entriesAfter(log, 'detections', null)) {
    if (part.kind !== 'commit' || (parseInstant(part.commit.at) ?? 0) > untilMs) continue;
    kept = { path: segment.path, end: part.end, mark: part.commit };
  }
  if (kept === null) throw new Refused('failed', `it contains nothing from before ${formatMs(untilMs)}`);
  let [entries, position, epochs] = [0, 0, 0];
  for (const { part } of entriesAfter(log, 'detections', kept.mark)) {
    if (part.kind === 'commit') entries += 1;
    for (const row of positionRows(part.lines)) {
      position = Math.max(position, Number(row.last_position ?? 0), Number(row.position ?? 0));
      if (row.orphans !== undefined && row.orphans !== 'read') epochs += 1;
    }
  }
  const { path, end } = kept;
  for (const segment of listSegments(log)) if (segment.path > path) rmSync(segment.path);
  // The recovery that follows puts what is left into a new file, and syncs it.
  truncateSync(path, end);
  return { entries, position, epochs };
}

/** @param lostAtMs now, where the end of the log may be lost; null: it is not */
function makeAccess(stage: DataFolder, lostAtMs: number | null): { accounts: number; keys: number } {
  const db = openAccess(stage.root, { operation: { kind: 'restore' } });
  try {
    // It may have said that sessions have ended, which must not come back to life.
    if (lostAtMs !== null) endConsoleSessions(db, lostAtMs);
    const counts = db.prepare<[], { accounts: number; keys: number }>(ACCESS_COUNTS).get();
    db.pragma('wal_checkpoint(TRUNCATE)');
    return counts ?? { accounts: 0, keys: 0 };
  } finally {
    db.close();
    syncFile(stage.access);
  }
}

async function makeDetections(
  { stage, drop, untilMs, now, onProgress }: NewStateOptions,
  lost: 'until' | 'backup' | null,
  cut: Cut,
  replaced: Replaced | null,
): Promise<Pick<NewState, 'state_of' | 'detections' | 'stream_rows' | 'orphans'>> {
  const state_of = findTail(stage.log, 'detections').last?.at ?? null;
  const { db, log } = await recoverDetections({
    folder: stage,
    program: VERSION,
    onProgress: (done, total) => onProgress('building detections.db', done, total),
    between: async () => {},
  });
  try {
    const counts = db.prepare<[], { detections: number; stream_rows: number }>(COUNTS).get();
    if (lost !== null) {
      const writer = new StreamWriter({ db, log, folder: stage.log, now, onDelivered: () => {} });
      const reason =
        untilMs === null
          ? `restored from a backup that ended at ${state_of}`
          : `restored to the state of ${formatMs(untilMs)}`;
      const ownEpochs = db.prepare<[], { epochs: number }>(COUNT_EPOCHS).get()?.epochs ?? 0;
      const epoch: Epoch = {
        reason,
        orphans: lost === 'until' ? 'left' : 'to read',
        position: Math.max(cut.position, replaced?.position ?? 0),
        lostEpochs: Math.max(cut.epochs, (replaced?.epochs ?? 0) - ownEpochs),
        parted: replaced?.parted ?? Number.POSITIVE_INFINITY,
      };
      writer.commit(writer.begin(new Set(), epoch), { kind: 'restore', reason });
    }
    const orphans = lost === null ? [] : orphanedFiles(db, drop);
    checkpointNoted(db, 'TRUNCATE');
    return { state_of, detections: 0, stream_rows: 0, ...counts, orphans };
  } finally {
    log.close();
    db.close();
    syncFile(stage.detections);
  }
}

/** The rows of deliveries and version epochs among the lines of a log: those of detections say nothing more of positions. */
function positionRows(lines: readonly string[]): Record<string, unknown>[] {
  return lines.flatMap((line) => {
    if (!line.startsWith('{"put":"delivery"') && !line.startsWith('{"put":"version_epoch"')) return [];
    const value = parse(line);
    return isObject(value) && isObject(value.row) ? [value.row] : [];
  });
}

/** @returns null: it cannot be read, or nothing shows that it is of the same installation; cursors will show the rest */
function replacedHistory(live: DataFolder, { stage, onProgress }: NewStateOptions): Replaced | null {
  const parted = partingPosition(live.log, stage.log, onProgress);
  if (parted === null) return null;
  let db: Database | null = null;
  try {
    db = openDatabase(live.detections, 'read');
    const epochs = db.prepare<[], { epochs: number }>(COUNT_EPOCHS).get()?.epochs ?? 0;
    return { parted, position: lastPosition(db), epochs };
  } catch {
    return null;
  } finally {
    db?.close();
  }
}

/**
 * @returns the last position that both logs have; infinite: one of them continues the other; null: unknown, since they have
 *   nothing in common or the log is damaged before they part
 */
function partingPosition(
  log: string,
  other: string,
  onProgress: NewStateOptions['onProgress'],
): number | null {
  const otherBytes = bytesOf(listSegments(other));
  const total = otherBytes + bytesOf(listSegments(log));
  const tell = (bytes: number) => onProgress('comparing the logs', bytes, total);
  const ids = new Map<number, string>();
  let end: string | null = null;
  for (const { part, bytes } of entriesAfter(other, 'detections', null)) {
    if (part.kind !== 'commit') continue;
    tell(bytes);
    end = part.commit.id;
    ids.set(part.commit.entry, end);
  }
  let common: number | null = null;
  let read = 0;
  try {
    for (const { part, bytes } of entriesAfter(log, 'detections', null)) {
      tell(otherBytes + bytes);
      for (const row of positionRows(part.lines)) read = Math.max(read, Number(row.last_position ?? 0));
      if (part.kind !== 'commit') continue;
      const id = ids.get(part.commit.entry);
      if (id === end && id === part.commit.id) return Number.POSITIVE_INFINITY;
      if (id !== undefined && id !== part.commit.id) return common;
      common = read;
    }
  } catch (error) {
    if (error instanceof LogDamage) return null;
    throw error;
  }
  return common === null ? null : Number.POSITIVE_INFINITY;
}
