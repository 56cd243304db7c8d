/**
 * Archived files without a record: where the end of the log was lost, they are what came after. They are taken out of the
 * archive and read as if they had just been dropped, so nothing is lost.
 */
import { type Dirent, readdirSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isErrorCode } from '../../refused.ts';
import type { Database } from '../../store/database.ts';
import { syncFolder } from '../../store/folder.ts';
import { judgeName } from '../format/file-name.ts';
import { isFileError, plainError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';

const SELECT_DESTINATIONS = 'SELECT destination FROM ingest_file WHERE destination IS NOT NULL';

const SELECT_TO_READ = `SELECT EXISTS (SELECT 1 FROM version_epoch WHERE orphans = 'to read') AS is_due`;
const SET_READ = `UPDATE version_epoch SET orphans = 'read' WHERE orphans = 'to read'`;

/** Takes them, once after every lost end that asks for it; what cannot be moved stops nothing, and is tried again. */
export class OrphanedFiles {
  readonly #workshop: Workshop;
  readonly #retryMs: number;
  /** Monotonic milliseconds; 0: they are not stuck. */
  #stuckUntilMs = 0;

  constructor(workshop: Workshop, retryMs: number) {
    this.#workshop = workshop;
    this.#retryMs = retryMs;
  }

  get isStuck(): boolean {
    return this.#stuckUntilMs > 0;
  }

  /** To be called between transactions. */
  take(): void {
    if (this.#stuckUntilMs > performance.now()) return;
    this.#stuckUntilMs = 0;
    try {
      takeOnce(this.#workshop);
    } catch (error) {
      if (!isFileError(error)) throw error;
      const err = plainError(error);
      this.#stuckUntilMs = performance.now() + this.#retryMs;
      this.#workshop.trouble('file stuck', `archive: ${err.message}`);
      this.#workshop.log(
        'error',
        'cannot move files without a record out of the archive: check its permissions; trying again',
        { err },
      );
    }
  }
}

/** @throws where some could not be moved */
function takeOnce(workshop: Workshop): void {
  const { db, writer, log } = workshop;
  if (db.prepare<unknown[], { is_due: number }>(SELECT_TO_READ).get()?.is_due !== 1) return;
  const files = takeOrphaned(workshop);
  writer.commit(writer.begin(), { kind: 'archived files without a record are read', files }, () =>
    db.prepare(SET_READ).run(),
  );
  log('warn', 'reading archived files without a record again', { files });
}

/** @returns how many */
function takeOrphaned({ db, drop, nextNumber }: Workshop): number {
  const files = orphanedFiles(db, drop.root);
  const faults: unknown[] = [];
  for (const file of files) {
    try {
      renameSync(join(drop.root, file), drop.takenPath(nextNumber(), droppedName(basename(file)) ?? ''));
    } catch (error) {
      if (!isFileError(error)) throw error;
      // It keeps no other.
      faults.push(error);
    }
  }
  const folders = new Set(files.map((file) => dirname(file)));
  for (const folder of files.length > 0 ? [...folders, '.taken'] : []) syncFolder(join(drop.root, folder));
  if (faults.length > 0) throw faults[0];
  return files.length;
}

/** @returns their paths in the drop folder */
export function orphanedFiles(db: Database, drop: string): string[] {
  const recorded = destinations(db);
  return entriesOf(join(drop, 'archive'))
    .filter((day) => day.isDirectory())
    .flatMap((day) =>
      entriesOf(join(drop, 'archive', day.name))
        .filter((entry) => entry.isFile() && droppedName(entry.name) !== null)
        .map((entry) => join('archive', day.name, entry.name)),
    )
    .filter((path) => !recorded.has(path));
}

/** The notes of rows that were left out lie beside their file, and could pass for a backfill. */
const SKIPPED_NOTES = /\.(ndjson|csv)(\.(gz|zst))?\.skipped\.ndjson$/;

/** The name under which an archived file was dropped: without the number that it got where the name was taken. */
function droppedName(name: string): string | null {
  if (SKIPPED_NOTES.test(name)) return null;
  for (const candidate of [name, name.replace(/\.\d+(\.\d+)?(?=\.(ndjson|csv)(\.(gz|zst))?$)/, '')]) {
    if (judgeName(candidate).kind === 'export') return candidate;
  }
  return null;
}

function destinations(db: Database): ReadonlySet<string> {
  const rows = db.prepare<unknown[], { destination: string }>(SELECT_DESTINATIONS).all();
  return new Set(rows.map(({ destination }) => destination));
}

function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return [];
    throw error;
  }
}
