/**
 * The state that a restore puts in place, built in a separate folder: the logs of the backup, continued by those of the
 * data folder if they continue the backup, and the databases that are built from them.
 *
 * The databases are built here, and not at the next start, because only that proves that the logs can be applied: until
 * then the old state is not touched. It also shows which positions and versions were given out.
 */

import { existsSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { endConsoleSessions } from '../auth/console-sessions.ts';
import { type Commit, isObject, type LogKind, type Mark, parse } from '../history/format.ts';
import { LogDamage } from '../history/log-error.ts';
import { entriesAfter, findTail, placeOf } from '../history/log-reader.ts';
import { openAccess } from '../history/open-access.ts';
import { recoverDetections } from '../history/recover.ts';
import { bytesOf, listSegments, logFolder } from '../history/segment.ts';
import { epochTimes } from '../history/version-epoch.ts';
import { type Epoch, StreamWriter } from '../ingest/apply/stream-writer.ts';
import { orphanedFiles } from '../ingest/drop/orphaned.ts';
import { Refused } from '../refused.ts';
import { checkpointNoted } from '../store/file-identity.ts';
import { type DataFolder, syncFile } from '../store/folder.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { formatMs, type Now, parseInstant } from '../time.ts';
import { VERSION } from '../version.ts';
import { type Continued, continueLog } from './continue-log.ts';
import { copyLog } from './log-copy.ts';
import { loadSource } from './source.ts';

export interface NewStateOptions {
  /** The folder that contains the logs of the backup. */
  readonly source: string;
  /** A new folder, in which the state is built. */
  readonly stage: DataFolder;
  /** The folder whose logs may continue the backup. */
  readonly live: DataFolder;
  readonly drop: string;
  /** Epoch milliseconds: what was written to the log of detections after it is cut off; null: nothing. */
  readonly untilMs: number | null;
  readonly now: Now;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/** Whether the log of the data folder continued that of the backup: to its end, or up to where it is damaged or cut off. */
export type LogOrigin = 'continued' | 'continued in part' | 'from the backup';

export interface NewState {
  /** When the backup was last updated; null if that is not known, as for a data folder. */
  readonly backed_up_at: string | null;
  /** When the last entry of the log of detections was written; null: it has none. */
  readonly state_of: string | null;
  readonly detections: number;
  readonly stream_rows: number;
  readonly accounts: number;
  readonly keys: number;
  /** The newest change of accounts, subscriptions and keys; null: there is none. */
  readonly access_state_of: string | null;
  readonly log: LogOrigin;
  readonly access_log: LogOrigin;
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

/** @throws Refused `failed`, LogDamage: the text follows the name of the backup */
export async function makeNewState(options: NewStateOptions): Promise<NewState> {
  const { source, stage, live, untilMs, onProgress } = options;
  const ends = loadSource(source, stage, onProgress);
  const log = originOf(live, stage, 'detections', ends.log);
  const accessLog = originOf(live, stage, 'access', ends.accessLog);
  const cut = untilMs === null ? NOTHING_CUT : cutLog(stage.log, untilMs);
  const ofAccess = makeAccess(stage, accessLog === 'continued' ? null : options.now());
  const lost = untilMs !== null ? 'until' : log === 'continued' ? null : 'backup';
  const replaced = log !== 'from the backup' ? null : replacedHistory(live, options);
  const made = await makeDetections(options, lost, cut, replaced);
  return {
    backed_up_at: ends.at,
    ...made,
    ...ofAccess,
    log,
    access_log: accessLog,
    entries_cut: cut.entries,
    raised: lost !== null,
  };
}

/** Continues the new log with that of the data folder. @param end null: the log of the backup is empty */
function originOf(live: DataFolder, stage: DataFolder, kind: LogKind, end: Mark | null): LogOrigin {
  const made = continued(live, stage, kind, end);
  if (made === null) return 'from the backup';
  if (hasEnd(live, stage, kind, made)) return 'continued';
  return made.last?.id === end?.id ? 'from the backup' : 'continued in part';
}

/** @returns null if the log of the data folder does not continue the new one, which is unchanged then */
function continued(live: DataFolder, stage: DataFolder, kind: LogKind, end: Mark | null): Continued | null {
  const [from, to] = [logFolder(live, kind), logFolder(stage, kind)];
  if (end !== null) return continueLog(from, to, kind, end);
  // Every log continues an empty one; the secret tells whether it is of the same installation.
  if (!existsSync(live.secret) || !readFileSync(live.secret).equals(readFileSync(stage.secret))) return null;
  try {
    const { last, isTorn } = findTail(from, kind);
    copyLog({ from, to, kind, end: last, aside: stage.root });
    return { last, rest: isTorn ? 'torn' : 'nothing' };
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
    rmSync(to, { recursive: true, force: true });
    return null;
  }
}

/**
 * Whether the log of the data folder has its last entry. A crash leaves a torn one only where the database lacks it, and
 * a cut may leave nothing of an entry: the database tells which ones there were.
 */
function hasEnd(live: DataFolder, stage: DataFolder, kind: LogKind, { last, rest }: Continued): boolean {
  const mark = readLogMarkOf(kind === 'detections' ? live.detections : live.access);
  if (mark === null || rest === 'damaged') return rest === 'nothing';
  if (mark.id === last?.id) return true;
  const place = placeOf(logFolder(stage, kind), kind, mark);
  return place === 'known' || place === 'before';
}

/** Facts of the part of the backup's history that is discarded. */
interface Cut {
  readonly entries: number;
  /** The last position that it gave out. */
  readonly position: number;
  /** Version epochs in it. */
  readonly epochs: readonly AbandonedEpoch[];
}

interface AbandonedEpoch {
  readonly at: number;
  /** After which it delivered; 0: an earlier history of which it knew, and which delivered. */
  readonly position: number;
  /** What changed after this position was announced again, and clients may have read only a part of that. */
  readonly announced_after: number;
}

/** Facts of the data folder's own history, if it does not continue that of the backup. */
interface Replaced extends Omit<Cut, 'entries'> {
  /** The last position that both histories have; infinite: one of them continues the other. */
  readonly parted: number;
}

const NOTHING_CUT: Cut = { entries: 0, position: 0, epochs: [] };

/** Truncates a log after the last entry that was written at or before a time. */
function cutLog(log: string, untilMs: number): Cut {
  let kept: { readonly path: string; readonly end: number; readonly mark: Mark } | null = null;
  for (const { segment, part } of entriesAfter(log, 'detections', null)) {
    if (part.kind !== 'commit' || (parseInstant(part.commit.at) ?? 0) > untilMs) continue;
    kept = { path: segment.path, end: part.end, mark: part.commit };
  }
  if (kept === null) throw new Refused('failed', `it contains nothing from before ${formatMs(untilMs)}`);
  let entries = 0;
  const given = new Given();
  for (const { part } of entriesAfter(log, 'detections', kept.mark)) {
    if (part.kind === 'commit') entries += 1;
    given.add(part.lines);
  }
  const { path, end } = kept;
  for (const segment of listSegments(log)) if (segment.path > path) rmSync(segment.path);
  // The recovery that follows puts what is left into a new file, and syncs it.
  truncateSync(path, end);
  return { entries, position: given.position, epochs: given.epochs };
}

/** @param lostAtMs now, where the end of the log may be lost; null: it is not */
function makeAccess(
  stage: DataFolder,
  lostAtMs: number | null,
): Pick<NewState, 'access_state_of' | 'accounts' | 'keys'> {
  const access_state_of = findTail(stage.accessLog, 'access').last?.at ?? null;
  const db = openAccess(stage.root, { operation: { kind: 'restore' } });
  try {
    // It may have said that sessions have ended, which must not come back to life.
    if (lostAtMs !== null) endConsoleSessions(db, lostAtMs);
    const counts = db.prepare<[], { accounts: number; keys: number }>(ACCESS_COUNTS).get();
    db.pragma('wal_checkpoint(TRUNCATE)');
    return { access_state_of, accounts: 0, keys: 0, ...counts };
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
          ? `restored from a log that ended at ${state_of}`
          : `restored to the state of ${formatMs(untilMs)}`;
      const own = new Set(epochTimes(db));
      const abandoned = [...cut.epochs, ...(replaced?.epochs ?? [])].filter(({ at }) => !own.has(at));
      const epoch: Epoch = {
        reason,
        orphans: lost === 'until' ? 'left' : 'to read',
        position: Math.max(cut.position, replaced?.position ?? 0),
        abandoned: abandoned.map(({ at }) => at),
        parted: Math.min(
          replaced?.parted ?? Number.POSITIVE_INFINITY,
          ...abandoned.map((known) => known.announced_after),
        ),
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

/** The positions and version epochs that a log gave out. */
class Given {
  /** The last position. */
  position = 0;
  /** The last position of a row. */
  delivered = 0;
  readonly #epochs = new Map<number, AbandonedEpoch>();

  get epochs(): readonly AbandonedEpoch[] {
    return [...this.#epochs.values()];
  }

  add(lines: readonly string[]): void {
    for (const line of lines) {
      // Lines of detections say nothing more of positions.
      if (!line.startsWith('{"put":"delivery"') && !line.startsWith('{"put":"version_epoch"')) continue;
      const value = parse(line);
      const row = isObject(value) && isObject(value.row) ? value.row : {};
      this.delivered = Math.max(this.delivered, Number(row.last_position ?? 0));
      this.position = Math.max(this.position, this.delivered, Number(row.position ?? 0));
      if (row.number !== undefined)
        this.#epochs.set(Number(row.number), {
          at: Number(row.at),
          position: Number(row.position),
          announced_after: Number(row.announced_after ?? Number.POSITIVE_INFINITY),
        });
    }
  }
}

/**
 * @param live the data folder
 * @returns null: nothing shows that it is of the same installation, or it is damaged before they part; cursors will show
 *   the rest
 */
function replacedHistory(live: DataFolder, { stage, onProgress }: NewStateOptions): Replaced | null {
  const { log } = live;
  const otherBytes = bytesOf(listSegments(stage.log));
  const total = otherBytes + bytesOf(listSegments(log));
  const given = new Given();
  let parted: number | null = null;
  let last: Mark | null = null;
  let [isParted, bytesRead] = [false, 0];
  const others = commitsOf(stage.log);
  let other = others.next().value;
  try {
    for (const { part, bytes } of entriesAfter(log, 'detections', null)) {
      given.add(part.lines);
      if (part.kind !== 'commit') continue;
      last = part.commit;
      while (other !== undefined && other.commit.entry < part.commit.entry) {
        bytesRead = other.bytes;
        other = others.next().value;
      }
      onProgress('comparing the logs', bytesRead + bytes, total);
      if (other?.commit.entry !== part.commit.entry) continue;
      isParted ||= other.commit.id !== part.commit.id;
      if (!isParted) parted = given.delivered;
    }
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
    if (!isParted) return null;
  } finally {
    others.return(undefined);
  }
  if (parted === null) return null;
  // An epoch that delivered nothing has issued no position, cursor or version. Without it, a copy that is restored again
  // and again does not use up the positions.
  const isComplete = last !== null && last.id === readLogMarkOf(live.detections)?.id;
  const delivered = isComplete ? given.delivered : Number.POSITIVE_INFINITY;
  const epochs = given.epochs.filter(({ position }) => position === 0 || position < delivered);
  return {
    parted: isParted && parted < delivered ? parted : Number.POSITIVE_INFINITY,
    position: Math.max(given.delivered, ...epochs.map(({ position }) => position)),
    epochs,
  };
}

function* commitsOf(log: string): Generator<{ commit: Commit; bytes: number }, undefined, undefined> {
  for (const { part, bytes } of entriesAfter(log, 'detections', null))
    if (part.kind === 'commit') yield { commit: part.commit, bytes };
}
