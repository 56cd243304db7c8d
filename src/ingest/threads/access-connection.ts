/**
 * Ingest's connection to `access.db`. An error of SQLite does not name its database, and this thread has two open: errors
 * of this one are marked, so that they are not taken for damage of `detections.db`.
 */
import { ACCESS_SCHEMA } from '../../store/access-schema.ts';
import { type Database, openDatabase } from '../../store/database.ts';

const NAME = 'access.db';

export class AccessConnection {
  readonly #db: Database;

  constructor(path: string) {
    this.#db = marked(() => openDatabase(path, 'write', ACCESS_SCHEMA));
  }

  /** The only way to the connection, so that no error remains without its mark. */
  use<Result>(work: (access: Database) => Result): Result {
    return marked(() => work(this.#db));
  }

  close(): void {
    this.#db.close();
  }
}

/** Whether an error, also one that comes from the thread, is of access.db. */
export function isOfAccess(error: Error): boolean {
  return 'database' in error && error.database === NAME;
}

function marked<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof Error ? Object.assign(error, { database: NAME }) : error;
  }
}
