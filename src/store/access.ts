/** How commands and the appliance open `access.db` for writing: the one way in, with its plain-English refusals. */
import { existsSync } from 'node:fs';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { ACCESS_MIGRATIONS } from './access-schema.ts';
import { type Database, isEmpty } from './database.ts';
import { isDiskFull } from './database-errors.ts';
import { dataFolder, ensureFolder } from './folder.ts';
import { refuseHalfRestored } from './incoming.ts';
import { ensureInstallation, type InstallationKind, installationKind } from './installation.ts';
import type { Migrated } from './migrate.ts';
import { openWriter } from './writer.ts';

export interface OpenAccessOptions {
  /** Without it either kind is accepted, and a new folder becomes an appliance's. */
  readonly kind?: InstallationKind;
  /** Whether a missing folder or database is made. */
  readonly create?: boolean;
  /** Told when the schema was an older one. */
  readonly onMigrated?: (migrated: Migrated) => void;
}

/**
 * Opens `access.db` in a data folder; the caller closes it.
 *
 * Safe beside a running appliance: what is committed here holds for the next request.
 *
 * @throws Refused `configuration` when there is no database (unless `create`), it cannot be opened, is not ours
 *   or newer, or the folder is of another kind; `failed` when another process keeps it busy
 */
export function openAccess(root: string, options: OpenAccessOptions = {}): Database {
  const folder = dataFolder(root);
  refuseHalfRestored(folder);
  if (options.create === true) ensureFolder(folder);
  else if (!existsSync(folder.access) || isEmpty(folder.access)) {
    throw new Refused(
      'configuration',
      `there is no installation in ${root}: ${folder.access} is missing or empty. Name the data folder with --data, or begin one with: wirewatch account add ID --name NAME`,
    );
  }
  const db = openOrRefuse(folder.access, options.onMigrated);
  try {
    if (options.kind !== undefined) ensureInstallation(db, options.kind);
    else if (installationKind(db) === null) ensureInstallation(db, 'appliance');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function openOrRefuse(path: string, onMigrated?: (migrated: Migrated) => void): Database {
  try {
    return openWriter(path, ACCESS_MIGRATIONS, onMigrated);
  } catch (error) {
    if (error instanceof Refused) throw error;
    const cause = { cause: error };
    if (isErrorCode(error, 'SQLITE_BUSY')) {
      throw new Refused('failed', `${path} is kept busy by another process. Try again in a moment.`, cause);
    }
    if (isDiskFull(error)) {
      throw new Refused('failed', `cannot open ${path}: the disk is full. Make room and try again.`, cause);
    }
    if (isErrorCode(error, 'SQLITE_NOTADB', 'SQLITE_CORRUPT')) {
      throw new Refused(
        'configuration',
        `${path} is damaged or no database. Put a backup in its place: wirewatch restore FILE --replace`,
        cause,
      );
    }
    const reason = reasonOf(error);
    throw new Refused(
      'configuration',
      `cannot open ${path}: ${reason}. Check that this user may read and write the data folder.`,
      cause,
    );
  }
}
