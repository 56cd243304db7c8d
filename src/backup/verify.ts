/**
 * Looks through a whole installation, in its data folder or unpacked from a backup. It only reads, each database as
 * of one moment, and files as they are: an appliance may run beside it.
 */
import { existsSync, statSync } from 'node:fs';
import { surveyJournal } from '../ingest/survey.ts';
import { Refused, reasonOf } from '../refused.ts';
import { ACCESS_MIGRATIONS } from '../store/access-schema.ts';
import { type Database, openReader } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import { DETECTIONS_MIGRATIONS } from '../store/detections-schema.ts';
import type { DataFolder } from '../store/folder.ts';
import type { Migrations } from '../store/migrate.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { type ArchiveOptions, checkArchive } from './check-archive.ts';
import { checkJournal, checkMark } from './check-journal.ts';
import { checkLedger } from './check-ledger.ts';
import { checkStream } from './check-stream.ts';
import { type CheckName, Findings } from './findings.ts';

export interface VerifyOptions {
  /** Null: the drop folder is not at hand. */
  readonly archive: Omit<ArchiveOptions, 'onFiles'> | null;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/** What can only be judged where detections.db is sound. */
const OF_DETECTIONS = ['sequences', 'deliveries', 'detections', 'windows', 'journal', 'archive'] as const;
const PROBLEMS_MAX = 20;

const FOREIGN_KEYS = 'PRAGMA foreign_key_check';
const BEING_REMOVED = `
  SELECT DISTINCT subscription.value AS id
  FROM ingest_request, json_each(request, '$.subscriptions') AS subscription
  WHERE outcome IS NULL AND request ->> '$.kind' = 'remove'`;
const ROWS = 'SELECT count(*) AS rows FROM stream_row';

export async function verify(folder: DataFolder, options: VerifyOptions): Promise<Findings> {
  const findings = new Findings();
  checkSecret(folder.secret, findings);
  options.onProgress('checking access.db', 0, 1);
  const removed = checkAccess(folder, findings);
  options.onProgress('checking detections.db', 0, 1);
  const db = openSound(folder.detections, 'detections.db', DETECTIONS_MIGRATIONS, findings);
  if (db === null) {
    for (const name of OF_DETECTIONS) findings.skip(name, 'detections.db is not sound');
    return findings;
  }
  try {
    // One that was asked for since may have begun.
    const begun = findings.has('access.db') ? [] : openRemovals(folder);
    const all = new Set([...removed, ...begun, ...removedSince(db, folder.journal)]);
    checkDetections(db, folder, findings, all, options);
    // A snapshot that is held while files are read would let the log of a running appliance grow.
    db.exec('COMMIT');
    await checkFiles(db, findings, options);
  } finally {
    db.close();
  }
  return findings;
}

function checkDetections(
  db: Database,
  folder: DataFolder,
  findings: Findings,
  removed: ReadonlySet<number>,
  { onProgress }: VerifyOptions,
): void {
  const rows = db.prepare<unknown[], { rows: number }>(ROWS).get()?.rows ?? 0;
  const attempt = (names: readonly CheckName[], check: () => void) => {
    try {
      check();
    } catch (error) {
      if (!isDamage(error)) throw error;
      for (const name of names) findings.skip(name, 'detections.db is damaged');
      findings.add('detections.db', reasonOf(error));
    }
  };
  attempt(['sequences', 'deliveries', 'detections'], () =>
    checkStream(db, findings, removed, (done) => onProgress('checking the stream', done, rows)),
  );
  attempt(['windows'], () => checkLedger(db, findings));
  attempt(['journal'], () => {
    checkJournal(db, folder.journal, findings);
    checkMark(db, 'detections.db', folder.journal, findings);
  });
}

async function checkFiles(
  db: Database,
  findings: Findings,
  { archive, onProgress }: VerifyOptions,
): Promise<void> {
  if (archive === null) {
    findings.skip('archive', 'the drop folder is not part of a backup');
    return;
  }
  await checkArchive(db, findings, {
    ...archive,
    onFiles: (done, total) => onProgress('checking archived files', done, total),
  });
}

function checkSecret(path: string, findings: Findings): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) findings.add('secret', `${path} is missing`);
  else if (found.size !== SECRET_BYTES)
    findings.add('secret', `${path} has ${found.size} bytes, not ${SECRET_BYTES}`);
}

/** @returns subscriptions that were removed and whose rows the one who ingests has yet to delete */
function checkAccess(folder: DataFolder, findings: Findings): ReadonlySet<number> {
  const access = openSound(folder.access, 'access.db', ACCESS_MIGRATIONS, findings);
  if (access === null) return new Set();
  try {
    checkMark(access, 'access.db', folder.journal, findings);
    return new Set(beingRemoved(access));
  } finally {
    access.close();
  }
}

function openRemovals({ access }: DataFolder): number[] {
  const db = openReader(access);
  try {
    return beingRemoved(db);
  } finally {
    db.close();
  }
}

function beingRemoved(access: Database): number[] {
  return access
    .prepare<unknown[], { id: number }>(BEING_REMOVED)
    .all()
    .map(({ id }) => id);
}

/** Subscriptions whose removal a database that was put back has yet to be led through again. */
function removedSince(db: Database, journal: string): number[] {
  const survey = surveyJournal(db, journal);
  if (survey.kind !== 'behind') return [];
  return survey.steps.flatMap((step) => (step.kind === 'removed' ? [step.line.removed] : []));
}

/** @returns a reader with a transaction open, so that all that follows is of one moment; null where it is not sound */
function openSound(
  path: string,
  name: 'detections.db' | 'access.db',
  migrations: Migrations,
  findings: Findings,
): Database | null {
  if (!existsSync(path)) {
    findings.add(name, `${path} is missing`);
    return null;
  }
  let db: Database | null = null;
  try {
    db = openReader(path);
    db.exec('BEGIN');
    checkDatabase(db, name, migrations, findings);
  } catch (error) {
    if (!isDamage(error) && !(error instanceof Refused)) throw error;
    findings.add(name, reasonOf(error));
  }
  if (!findings.has(name)) return db;
  db?.close();
  return null;
}

function checkDatabase(
  db: Database,
  name: 'detections.db' | 'access.db',
  { application_id, steps }: Migrations,
  findings: Findings,
): void {
  const problems = db.prepare<unknown[], { integrity_check: string }>(
    `PRAGMA integrity_check(${PROBLEMS_MAX})`,
  );
  for (const { integrity_check: problem } of problems.all())
    if (problem !== 'ok') for (const line of problem.split('\n')) findings.add(name, line);
  if (findings.has(name)) return;
  if (Number(db.pragma('application_id', { simple: true })) !== application_id)
    findings.add(name, 'it is no database of this program');
  const schema = Number(db.pragma('user_version', { simple: true }));
  // An older one is brought up to date by the next start.
  if (schema > steps.length || schema === 0) {
    findings.add(
      name,
      `it has schema ${schema}, this program knows ${steps.length}: verify it with the program that wrote it`,
    );
  }
  const broken = db.prepare<unknown[], { table: string; rowid: number | null; parent: string }>(FOREIGN_KEYS);
  for (const { table, rowid, parent } of broken.iterate())
    findings.add(name, `row ${rowid ?? ''} of ${table} refers to a row of ${parent} that is not there`);
}
