/**
 * Rebuilds the database from the log (`rebuild`), or the log from a verified database (`rebuild --log`), while the
 * appliance is stopped.
 */

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { Refused, reasonOf } from '../refused.ts';
import { closeDetections, openDetections } from '../store/checkpoint.ts';
import { type Database, integrityError, openDatabase } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import type { DataFolder } from '../store/folder.ts';
import { readLogMark, setLogMark } from '../store/log-mark.ts';
import type { Commit, Mark } from './format.ts';
import { LogDamage } from './log-error.ts';
import { LogWriter } from './log-writer.ts';
import { type Recovered, recoverDetections } from './recover.ts';
import { acceptDraft, emptyDraft, swapInNewLog } from './replace-log.ts';
import { type ScrubResult, scrub } from './scrub.ts';
import { describeFindings, FINDING_KINDS } from './scrub-findings.ts';
import { writeScrubRecord } from './scrub-record.ts';
import { bytesOf, EntryReader, listSegments } from './segment.ts';
import { type SnapshotOptions, writeSnapshot } from './snapshot.ts';

export interface RebuildOptions {
  readonly folder: DataFolder;
  /** The version of this program. */
  readonly program: string;
  readonly onProgress: (what: string, done: number, total: number) => void;
  readonly between: () => Promise<void>;
}

export interface RebuiltDatabase {
  /** Entries of the log. */
  readonly entries: number;
  readonly detections: number;
  readonly versions: number;
}

export interface RebuiltLog {
  /** The number of its first entry. */
  readonly entry: number;
  readonly detections: number;
  readonly versions: number;
  readonly bytes_before: number;
  readonly bytes: number;
  /** The folder of the old log; null if there was none. */
  readonly kept: string | null;
  /** Entries of a damaged old log that the database had not applied, as after a power cut: the new log lacks them. */
  readonly entries_lost: number;
}

/**
 * Rebuilds detections.db from its log. A crash leaves the old file.
 *
 * @throws Refused if the log is damaged: then nothing was changed
 */
export async function rebuildDatabase(options: RebuildOptions): Promise<RebuiltDatabase> {
  const { folder } = options;
  if (listSegments(folder.log).length === 0 && !existsSync(`${folder.log}-new`))
    throw new Refused('failed', `${folder.log} contains no log from which detections.db could be rebuilt.`);
  const wasNoted = existsSync(folder.damage);
  if (!wasNoted) writeFileSync(folder.damage, 'a rebuild was requested\n', { mode: 0o600 });
  try {
    const recovered = await recover(options);
    const { db } = recovered;
    rmSync(folder.verified, { force: true });
    try {
      return { entries: readLogMark(db)?.entry ?? 0, ...countRows(db) };
    } finally {
      closeRecovered(recovered);
    }
  } catch (error) {
    if (!wasNoted) rmSync(folder.damage, { force: true });
    throw error;
  }
}

/**
 * Starts the log anew. The new one is compared with the database before it replaces the old one, which is kept.
 *
 * @throws Refused if the database differs from the log, as far as that can be read, or is damaged
 */
export async function rebuildLog(options: RebuildOptions, nowMs: number): Promise<RebuiltLog> {
  const { folder } = options;
  if (existsSync(folder.damage))
    throw new Refused(
      'failed',
      `detections.db is damaged, so no log can be created from it. Rebuild the database first: wirewatch rebuild. Nothing was changed.`,
    );
  const bytesBefore = bytesOf(listSegments(folder.log));
  await bringUpToDate(options);
  requireSound(folder.detections);
  const found = await scrub(options);
  requireAgreement(folder, found);
  const db = openDetections(folder.detections);
  try {
    const mark = readLogMark(db);
    if (mark === null)
      throw new Refused('failed', 'detections.db is still empty, so there is no log to rebuild.');
    const entries_lost = newestEntry(folder.log) - mark.entry;
    const commit = await writeDraft(db, mark, options, { nowMs, isProven: found.findings.length === 0 });
    const compared = await scrub({
      ...options,
      folder: { ...folder, log: `${folder.log}-draft` },
      mark: commit,
    });
    if (compared.findings.length > 0) throw disagrees(folder, compared);
    requireCompared(compared);
    acceptDraft(folder.log);
    const kept = swapInNewLog(folder.log, nowMs);
    // After a crash before this, the next start does it: the new log starts with a snapshot of this database.
    setLogMark(db, commit);
    writeScrubRecord(folder, compared, nowMs);
    return {
      entry: commit.entry,
      ...countRows(db),
      bytes_before: bytesBefore,
      bytes: bytesOf(listSegments(folder.log)),
      kept,
      entries_lost: Math.max(0, entries_lost),
    };
  } finally {
    emptyDraft(folder.log);
    closeDetections(db);
  }
}

function recover({ folder, program, onProgress, between }: RebuildOptions): Promise<Recovered> {
  return recoverDetections({
    folder,
    program,
    onProgress: (done, total) => onProgress('reading the log', done, total),
    between,
  });
}

/** Applies missing entries, as a start does, unless the log is damaged. */
async function bringUpToDate(options: RebuildOptions): Promise<void> {
  try {
    closeRecovered(await recover(options));
  } catch (error) {
    if (!isOfLog(error) || !existsSync(options.folder.detections)) throw error;
  }
}

/** The number of the last entry with an intact commit line, in a log that may be damaged; 0: there is none. */
function newestEntry(log: string): number {
  let newest = 0;
  for (const segment of listSegments(log).reverse()) {
    try {
      using reader = new EntryReader(segment);
      for (const { commit } of reader.commitsBehind()) newest = Math.max(newest, commit.entry);
    } catch (error) {
      if (!(error instanceof LogDamage)) throw error;
    }
    if (newest > 0) break;
  }
  return newest;
}

function isOfLog(error: unknown): boolean {
  return error instanceof Refused && error.cause instanceof LogDamage;
}

function closeRecovered({ db, log }: Recovered): void {
  log.close();
  closeDetections(db);
}

async function writeDraft(
  db: Database,
  mark: Mark,
  { folder, program, between, onProgress }: RebuildOptions,
  how: Pick<SnapshotOptions, 'nowMs' | 'isProven'>,
): Promise<Commit> {
  const draft = emptyDraft(folder.log);
  const log = new LogWriter({ folder: draft, program }, { last: mark, segment: null });
  try {
    return await writeSnapshot(db, log, {
      ...how,
      between,
      onProgress: (done, total) => onProgress('writing the new log', done, total),
    });
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new Refused('failed', `${folder.detections}: ${reasonOf(error)}. ${WHAT_TO_DO}`, { cause: error });
  } finally {
    log.close();
  }
}

const WHAT_TO_DO =
  'Nothing was changed. If the log is not damaged, rebuild the database from it (wirewatch rebuild). Otherwise restore a backup (wirewatch restore BACKUP --replace).';

/** If the log is damaged, only the database itself can show whether it is intact. */
function requireSound(path: string): void {
  let found: string | null;
  try {
    using db = openDatabase(path, 'inspect');
    found = integrityError(db);
  } catch (error) {
    if (!isDamage(error)) throw error;
    found = reasonOf(error);
  }
  if (found !== null) throw new Refused('failed', `detections.db is damaged: ${found}. ${WHAT_TO_DO}`);
}

/** A damaged log is the reason for the command, but a database that differs from the log cannot start a new one. */
function requireAgreement(folder: DataFolder, result: ScrubResult): void {
  if (result.findings.some(({ kind }) => FINDING_KINDS[kind].of !== 'log')) throw disagrees(folder, result);
  if (result.findings.length === 0) requireCompared(result);
}

function requireCompared({ not_compared }: ScrubResult): void {
  if (not_compared !== null) throw new Refused('failed', `${not_compared}. Nothing was changed.`);
}

function disagrees({ detections }: DataFolder, { findings }: ScrubResult): Refused {
  return new Refused(
    'failed',
    `cannot create a log from ${detections}: ${describeFindings(findings)}. If a subscription is being removed, start Wirewatch and let the removal finish first. ${WHAT_TO_DO}`,
  );
}

const COUNTS = `
  SELECT (SELECT count(*) FROM detection) AS detections, (SELECT count(*) FROM stream_row) AS versions`;

function countRows(db: Database): { detections: number; versions: number } {
  const none = { detections: 0, versions: 0 };
  return db.prepare<unknown[], typeof none>(COUNTS).get() ?? none;
}
