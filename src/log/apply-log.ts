/** Applies the log to `detections.db`. Rows equal those of ingest in each column: nothing is read, checked or decided twice. */
import { CHECKPOINT_BYTES, checkpoint, walBytes } from '../store/checkpoint.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { readLogMark, setLogMark } from '../store/log-mark.ts';
import { deleteStream, detectionRows, endedStreams } from './detection-rows.ts';
import { effectApplier } from './effects.ts';
import type { Mark } from './format.ts';
import type { EntryPart } from './frame.ts';
import { entriesAfter } from './log-reader.ts';
import { type DetectionState, readLine } from './row-lines.ts';
import { bytesOf, listSegments } from './segment.ts';

/** The tables that are logged by effects.ts; detections have lines of their own (row-lines.ts). */
export const LOGGED_TABLES = [
  'delivery',
  'export_window',
  'export_expectation',
  'window_look',
  'ingest_file',
  'version_epoch',
  'copy_mode',
] as const;

/** The log has rows of this table with the removal of a stream, and in a snapshot. Ordinals are never used again. */
export const STREAM_TABLE = 'stream';

/** Small entries share a transaction, since they change the same pages. */
const TRANSACTION_LINES = 5_000;

export function logApplier(db: Database, hasTexts = true) {
  const rows = detectionRows(db, hasTexts);
  const applyEffect = effectApplier(db, [...LOGGED_TABLES, STREAM_TABLE]);
  /** Rows of exports whose outcome is still to come. */
  const waiting: DetectionState[] = [];
  /** The mark of the last complete entry in the open transaction. */
  let mark: Mark | null = null;
  let isWithinEntry = false;
  let lines = 0;

  function taken(count: number): DetectionState[] {
    if (count > waiting.length) throw new LogDamage('a line refers to rows that do not exist');
    return waiting.splice(0, count);
  }

  function applyLine({ line, state }: ReturnType<typeof readLine>): void {
    lines += 1;
    const [position, version] = [Number(line.position), Number(line.version)];
    if (state !== null) {
      if (line.row !== undefined) waiting.push(state);
      else if (line.changed !== undefined) {
        if (!rows.create(state, version, position)) rows.change(state, version, position);
      } else if (!rows.rescore(state, version))
        throw new LogDamage(`the log rescores the unknown detection ${state.id}`);
    } else if (line.created !== undefined) {
      for (const [index, created] of taken(Number(line.created)).entries())
        if (!rows.create(created, version, position + index))
          throw new LogDamage(`the log creates detection ${created.id} twice`);
    } else if (line.passed !== undefined) taken(Number(line.passed));
    else if (line.removed !== undefined) {
      const subscription = Number(line.removed);
      rows.end(subscription);
      for (const ordinal of endedStreams(db, subscription)) for (const _ of deleteStream(db, ordinal)); // Each step deletes.
    } else if (!applyEffect(line)) throw new LogDamage('a line of the log has unknown content');
  }

  /** Commits the entries so far. @throws LogDamage within an entry, of which parts are applied: then roll back */
  function commit(): void {
    if (isWithinEntry) throw new LogDamage('the log ends within an entry');
    if (mark === null) return;
    setLogMark(db, mark);
    db.exec('COMMIT');
    mark = null;
    lines = 0;
  }

  return {
    /** Applies a part of an entry, in one transaction with the entry's other parts, and with other entries. */
    apply(part: EntryPart): void {
      if (!db.inTransaction) db.exec('BEGIN IMMEDIATE');
      isWithinEntry = true;
      for (const line of part.lines()) applyLine(readLine(line));
      if (part.commit === null) return;
      if (waiting.length > 0)
        throw new LogDamage(`entry ${part.commit.entry} contains rows without an outcome`);
      rows.finish();
      mark = part.commit;
      isWithinEntry = false;
      if (lines >= TRANSACTION_LINES) commit();
    },
    commit,
    /** Nothing may be applied after it. */
    rollback(): void {
      if (db.inTransaction) db.exec('ROLLBACK');
    },
  };
}

export interface ApplyOptions {
  readonly folder: Pick<DataFolder, 'log'>;
  /** In bytes of the log. */
  readonly onProgress: (done: number, total: number) => void;
  /** Called between entries: throws to interrupt the work. */
  readonly between: () => Promise<void>;
}

/** Applies what the database lacks, after SQLite refused the commit of a decided entry. @returns how many entries */
export function applyPending(db: Database, folder: string): number {
  const parts = applyEntries(db, folder, Number.POSITIVE_INFINITY);
  return parts.reduce((applied, { part }) => applied + (part.commit === null ? 0 : 1), 0);
}

/** Applies the entries that the database lacks, up to one, and yields each part after that. */
function* applyEntries(db: Database, folder: string, end: number) {
  const applier = logApplier(db);
  try {
    for (const located of entriesAfter(folder, readLogMark(db))) {
      applier.apply(located.part);
      yield located;
      if ((located.part.commit?.entry ?? 0) >= end) break;
    }
    applier.commit();
  } finally {
    applier.rollback();
  }
}

/** Applies the entries that the database lacks, up to one. @returns how many */
export async function applyAfter(db: Database, options: ApplyOptions, end = Number.POSITIVE_INFINITY) {
  const { folder, onProgress, between } = options;
  const mark = readLogMark(db);
  if ((mark?.entry ?? 0) >= end) return 0;
  const total = bytesAfter(folder.log, mark);
  let applied = 0;
  for (const { part, bytes } of applyEntries(db, folder.log, end)) {
    if (part.commit !== null) {
      applied += 1;
      onProgress(bytes, total);
    }
    // Between two transactions, so that the write-ahead log does not grow with what is applied.
    if (!db.inTransaction && walBytes(db) > CHECKPOINT_BYTES) checkpoint(db);
    await between();
  }
  return applied;
}

/** Bytes of the segments with the entries after one. */
export function bytesAfter(log: string, mark: Mark | null): number {
  const segments = listSegments(log);
  const first = segments.findLastIndex(({ firstEntry }) => firstEntry <= (mark?.entry ?? 0) + 1);
  return bytesOf(segments.slice(Math.max(0, first)));
}
