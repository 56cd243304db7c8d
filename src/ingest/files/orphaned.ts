/** Archived files without a record, which a lost end of the log leaves: they are read as if they had just been dropped. */
import { basename, dirname, join } from 'node:path';
import { isFileError } from '../../drop/file-errors.ts';
import { entriesIn, hasArchive, renameIn, syncIn } from '../../drop/own-folder.ts';
import type { DropNames } from '../../drop/waiting-names.ts';
import { droppedName } from '../../exports/file-name.ts';
import type { Database } from '../../store/database.ts';
import { type Ingest, nextNumber } from './finished-file.ts';

const SELECT_DESTINATIONS = 'SELECT destination FROM ingest_file WHERE destination IS NOT NULL';

const SELECT_ORPHANS = 'SELECT orphans FROM version_epoch';
const SET_READ = `UPDATE version_epoch SET orphans = 'read' WHERE orphans = 'to read'`;

/** Whether archived files are, or were, read again: then one without a record may have been taken long before. */
export const hasHadOrphans = (db: Database): boolean => orphansOf(db).some((orphans) => orphans !== 'left');

/** What becomes of them after each lost end. */
const orphansOf = (db: Database): string[] => db.prepare<[], string>(SELECT_ORPHANS).pluck().all();

/** Once after every lost end that asks for it, between transactions. @throws if some could not be moved */
export function moveOrphaned(files: Ingest): void {
  const { drop, writer, log } = files;
  if (!orphansOf(writer.db).includes('to read')) return;
  if (!hasArchive(drop.root)) return;
  const paths = orphanedFiles(writer.db, drop);
  const errors: unknown[] = [];
  for (const path of paths) {
    try {
      const name = droppedName(basename(path), drop.parse) ?? '';
      renameIn(drop.root, path, drop.takenPath(nextNumber(files), name));
    } catch (error) {
      if (!isFileError(error)) throw error;
      errors.push(error);
    }
  }
  const folders = new Set(paths.map((path) => dirname(path)));
  for (const folder of paths.length > 0 ? [...folders, '.taken'] : []) syncIn(drop.root, folder);
  if (errors.length > 0) throw errors[0];
  const operation = { kind: 'archived files without a record are read', files: paths.length };
  writer.write(operation, () => writer.db.prepare(SET_READ).run());
  log('warn', 'reading archived files without a record again', { files: paths.length });
}

/** @returns their paths in the drop folder */
export function orphanedFiles(db: Database, { root, parse }: DropNames): string[] {
  const recorded = new Set(db.prepare<[], string>(SELECT_DESTINATIONS).pluck().all());
  return entriesIn(root, 'archive')
    .filter((day) => day.isDirectory())
    .flatMap((day) =>
      entriesIn(root, join('archive', day.name))
        .filter((entry) => entry.isFile() && droppedName(entry.name, parse) !== null)
        .map((entry) => join('archive', day.name, entry.name)),
    )
    .filter((path) => !recorded.has(path));
}
