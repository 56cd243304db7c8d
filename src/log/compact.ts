/**
 * Compaction rewrites the log: a snapshot of the database takes the place of all entries up to the last one in it, with
 * that one's number and id; later entries stay. So marks stay valid, and ingest goes on meanwhile. The log is shorter then,
 * without removed rows, and without damage.
 *
 * The database is compared with the log before, as far as that can be read, and with the snapshot before that replaces
 * anything, all in one read transaction: the write-ahead log grows meanwhile.
 */
import { existsSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { counted } from '../counted.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { closeDetections } from '../store/checkpoint.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { LogDamage, unlessLogError } from '../store/log-errors.ts';
import { readLogMark, waitsForCopy } from '../store/log-mark.ts';
import type { Mark } from './format.ts';
import { commitsBackwards } from './log-reader.ts';
import { logWriter } from './log-writer.ts';
import { type Decisions, recoverDetections } from './recover.ts';
import { type SteppedWork, scrub } from './scrub.ts';
import { describeFindings, findingsOf, type ScrubResult, writeScrubRecord } from './scrub-findings.ts';
import { bytesOf, draftOf, listSegments, replaceLog, SegmentReader, tidyLog } from './segment.ts';
import { writeSnapshot } from './snapshot.ts';

export type CompactOptions = SteppedWork & Readonly<{ folder: DataFolder; nowMs: number }>;

export type Compacted = Awaited<ReturnType<typeof compact>>;

/** The kind of the entry that removes the rows of a subscription. */
export const REMOVE = 'remove';
/** How long to work before other work may run. */
const TURN_MS = 20;

/**
 * Whether a log still has rows that an entry in it removes: a snapshot has neither.
 * @param last the number of its last entry
 * @param ifDamaged the answer where such an entry may be among those that cannot be read
 */
export function hasRemovedRows(log: string, last: number, ifDamaged: boolean): boolean {
  return unlessLogError(ifDamaged, () => {
    let entries = last + 1 - (listSegments(log)[0]?.firstEntry ?? last + 1);
    for (const { operation } of commitsBackwards(log)) {
      if (operation.kind === REMOVE) return true;
      entries -= 1;
    }
    return ifDamaged && entries > 0;
  });
}

/**
 * Compacts the log. The caller alone may append to it, and must have closed the open segment.
 * @returns `entry`: the number of the one that the log begins with now; `damage`: what was damaged in the log; null: nothing
 * @throws Refused `failed` if the database differs from the log, or is damaged, or there is no room: then nothing was
 *   changed; LogFailure, ENOSPC, whatever `between` throws: the same
 */
export async function compact(options: CompactOptions) {
  const { folder, nowMs } = options;
  if (existsSync(folder.damage))
    throw failed(
      'detections.db is damaged, so the log cannot be rewritten from it. Restart Wirewatch, which makes the database anew from the log. Nothing was changed.',
    );
  tidyLog(folder.log);
  const segments = listSegments(folder.log);
  const bytes_before = bytesOf(segments);
  using db = openDatabase(folder.detections, 'read');
  db.exec('BEGIN');
  const mark = readLogMark(db);
  if (mark === null) throw failed('detections.db is still empty, so there is no log to rewrite.');
  requireAll(folder, newestEntry(segments) - mark.entry);
  const work = { ...options, db };
  try {
    const found = await scrub(work);
    // Findings of the database become an alert, and the next start makes it anew.
    if (found.findings.length > 0) writeScrubRecord(folder, found, nowMs);
    if (findingsOf(found, 'database').length > 0) throw unsound(folder, describeFindings(found.findings));
    if (found.findings.length === 0) requireCompared(found);
    await writeDraft(db, mark, work);
    // Where the log is damaged, this alone shows whether the database is intact.
    const compared = await scrub({ ...work, folder: { ...folder, log: draftOf(folder.log) } });
    if (compared.findings.length > 0) throw unsound(folder, describeFindings(compared.findings));
    requireCompared(compared);
    replaceLog(folder.log, mark.entry);
    writeScrubRecord(folder, compared, nowMs);
    const countOf = (table: string) =>
      db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
    const [detections, versions] = [countOf('detection'), countOf('stream_row')];
    const bytes = bytesOf(listSegments(folder.log));
    const damage = found.findings.length === 0 ? null : describeFindings(found.findings);
    return { entry: mark.entry, detections, versions, bytes_before, bytes, damage };
  } finally {
    tidyLog(folder.log);
  }
}

/** A snapshot of what is not decided could be undone by nothing. */
const UNDECIDED: Decisions = {
  areAwaited: waitsForCopy,
  decide(_, db) {
    if (waitsForCopy(db))
      throw failed(
        'the last entry of the log waits for the copy: start Wirewatch, and compact it while it runs.',
      );
  },
};

/** Compacts the log of a stopped installation, which may be too damaged for a start. @throws as {@link compact} */
export async function compactStopped(options: CompactOptions): Promise<Compacted> {
  const { folder, between, onProgress } = options;
  try {
    const onApplied = (done: number, total: number) => onProgress('the log', done, total);
    const work = { between, onProgress: onApplied, decisions: UNDECIDED };
    const { db, log } = await recoverDetections({ folder, ...work });
    log.close();
    closeDetections(db);
  } catch (error) {
    const isOfLog = error instanceof Refused && error.cause instanceof LogDamage;
    if (!isOfLog || !existsSync(folder.detections)) throw error;
  }
  return compact(options);
}

export const progressText = (what: string, done: number, total: number): string =>
  `rewriting the log: ${what}, ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`;

/** Lets other work run every few milliseconds: it may have to look into the drop folder. */
export function inTurns(between: () => Promise<void>): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < TURN_MS) return;
    await nextTurn();
    await between();
    sinceMs = performance.now();
  };
}

async function writeDraft(db: Database, mark: Mark, options: CompactOptions): Promise<void> {
  const { folder } = options;
  const last = { ...mark, entry: mark.entry - 1 };
  const log = logWriter({ folder: draftOf(folder.log) }, { last, segment: null });
  try {
    await writeSnapshot(db, log, mark, options);
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw unsound(folder, reasonOf(error), error);
  } finally {
    log.close();
  }
}

/** @param lost entries of a damaged log that the database lacks, as it may after a power cut */
function requireAll(folder: DataFolder, lost: number): void {
  if (lost <= 0) return;
  const entries = counted(lost, 'entry', 'entries');
  throw failed(
    `the damaged log has ${entries} that detections.db lacks. Nothing was changed. Restore a backup (wirewatch restore BACKUP --replace), which reads archived files again. Without a backup, move the folder ${folder.log} away and run wirewatch compact again: these ${entries} are lost then.`,
  );
}

/** The number of the last entry with an intact commit line, in segments that may be damaged; 0: there is none. */
function newestEntry(segments: ReturnType<typeof listSegments>): number {
  let newest = 0;
  for (const segment of segments.toReversed()) {
    try {
      using reader = new SegmentReader(segment);
      for (const { entry } of reader.commitsBehind()) newest = Math.max(newest, entry);
    } catch (error) {
      if (!(error instanceof LogDamage)) throw error;
    }
    if (newest > 0) break;
  }
  return newest;
}

function requireCompared({ not_compared }: ScrubResult): void {
  if (not_compared !== null) throw failed(`${not_compared}. Nothing was changed.`);
}

function unsound({ detections }: DataFolder, found: string, cause?: unknown): Refused {
  return failed(
    `the log cannot be rewritten from ${detections}: ${found}. Nothing was changed. If the log is not damaged, run wirewatch verify and restart Wirewatch: it makes the database anew from the log. Otherwise restore a backup (wirewatch restore BACKUP --replace).`,
    { cause },
  );
}
