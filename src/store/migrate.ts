/**
 * Schemas and their numbered migrations: forward only, all in one transaction, after a copy.
 *
 * A database is known by its `application_id`, its schema by `user_version`. A newer schema than this program
 * knows, and a file that is something else, are refused with nothing touched.
 */
import { renameSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Refused } from '../refused.ts';
import { copyDatabase } from './copy.ts';
import type { Database } from './database.ts';
import { isDiskFull } from './database-errors.ts';
import { syncFolder } from './folder.ts';

export interface Migrations {
  readonly application_id: number;
  /** The SQL of schema version 1, 2, … in order. */
  readonly steps: readonly string[];
}

/** A database that was brought up to date. */
export interface Migrated {
  /** The file's name. */
  readonly database: string;
  readonly from: number;
  readonly to: number;
  /** Path of the copy of how it was. */
  readonly copy: string;
}

/**
 * Copy and change in one transaction: another process that would do the same waits, and finds it done.
 *
 * @param db a writer in WAL mode
 * @returns null when there was nothing to do, or the database is new
 * @throws Refused `configuration` when it is not ours or newer; `failed` when there is no room
 */
export function migrate(db: Database, path: string, migrations: Migrations): Migrated | null {
  const to = migrations.steps.length;
  const found = schemaVersion(db, path, migrations);
  if (found === to) return null;
  const copyAndChange = db.transaction((): Migrated | null => {
    const from = schemaVersion(db, path, migrations);
    if (from === to) return null;
    const copy = `${path}.schema-${from}`;
    if (from > 0) copyTo(copy, path);
    bringUpToDate(db, path, migrations);
    return from === 0 ? null : { database: basename(path), from, to, copy };
  });
  try {
    return copyAndChange.immediate();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    throw new Refused(
      'failed',
      `there is no room to bring ${path} from schema ${found} to ${to}: that takes a copy of it first. Nothing was changed; make room and start again.`,
      { cause: error },
    );
  }
}

/** Without a copy: for a database that nobody would miss, or of which there is one. */
export function bringUpToDate(db: Database, path: string, migrations: Migrations): void {
  db.transaction(() => {
    for (const step of migrations.steps.slice(schemaVersion(db, path, migrations))) db.exec(step);
    db.pragma(`application_id = ${migrations.application_id}`);
    db.pragma(`user_version = ${migrations.steps.length}`);
  }).immediate();
}

/**
 * The schema of a database; 0 for a new one.
 *
 * @throws Refused `configuration` when it is not ours, or newer than this program
 */
export function schemaVersion(db: Database, path: string, migrations: Migrations): number {
  // In one transaction: another process may be about to make this database.
  const { version, applicationId, isNew } = db.transaction(() => readMarks(db))();
  if (isNew) return 0;
  if (applicationId !== migrations.application_id) {
    throw new Refused(
      'configuration',
      `${path} is not a database of this program. Name another data folder with --data.`,
    );
  }
  if (version > migrations.steps.length) {
    throw new Refused(
      'configuration',
      `${path} has schema ${version}, this program knows ${migrations.steps.length}. It was written by a newer version: start that one. Nothing was changed.`,
    );
  }
  return version;
}

function readMarks(db: Database): { version: number; applicationId: number; isNew: boolean } {
  const version = Number(db.pragma('user_version', { simple: true }));
  const applicationId = Number(db.pragma('application_id', { simple: true }));
  const isNew =
    version === 0 && applicationId === 0 && db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
  return { version, applicationId, isNew };
}

/** The copy appears under its name only when it is whole and on disk; one of an earlier attempt is replaced. */
function copyTo(copy: string, path: string): void {
  const draft = `${copy}.tmp`;
  rmSync(draft, { force: true });
  try {
    copyDatabase(path, draft);
    renameSync(draft, copy);
    syncFolder(dirname(copy));
  } finally {
    rmSync(draft, { force: true });
  }
}
