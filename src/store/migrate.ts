/**
 * Schemas and their numbered migrations: forward only, one transaction each.
 *
 * A database is known by its `application_id`, its schema by `user_version`. A newer schema than this program
 * knows, and a file that is something else, are refused with nothing touched.
 */

import { Refused } from '../refused.ts';
import type { Database } from './database.ts';

export interface Migrations {
  readonly application_id: number;
  /** The SQL of schema version 1, 2, … in order. */
  readonly steps: readonly string[];
}

export function migrate(db: Database, path: string, migrations: Migrations): void {
  const latest = migrations.steps.length;
  const found = schemaVersion(db, path, migrations);
  if (found === latest) return;
  if (found > 0) db.prepare('VACUUM INTO ?').run(`${path}.schema-${found}`);
  for (let version = found + 1; version <= latest; version += 1) {
    const step = migrations.steps[version - 1] ?? '';
    db.transaction(() => {
      // Another process may have migrated while this one waited for the lock.
      if (schemaVersion(db, path, migrations) >= version) return;
      db.exec(step);
      db.pragma(`application_id = ${migrations.application_id}`);
      db.pragma(`user_version = ${version}`);
    }).immediate();
  }
}

function schemaVersion(db: Database, path: string, migrations: Migrations): number {
  const version = Number(db.pragma('user_version', { simple: true }));
  const applicationId = Number(db.pragma('application_id', { simple: true }));
  const isNew =
    version === 0 && applicationId === 0 && db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
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
