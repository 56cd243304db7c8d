/**
 * Ingest's connection to `access.db`, and what a file needs of it. An error of SQLite does not name its database, and
 * this thread has two open: errors of this one are marked, so that they are not taken for damage of `detections.db`.
 */
import { listAccounts } from '../../auth/accounts.ts';
import { auditChanges } from '../../auth/open-access.ts';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { type ContentType, type ExportName, streamName, TYPE_RULES } from '../../detection/content-type.ts';
import { ACCESS_SCHEMA } from '../../store/access-schema.ts';
import { type Database, openDatabase } from '../../store/database.ts';
import type { DataFolder } from '../../store/folder.ts';

const NAME = 'access.db';

/** The streams of the enabled exports, and the subscriptions whose account may see the addresses of print articles. */
export function readSubscribers(access: Database, enabled: readonly ExportName[]) {
  const subscriptions = listSubscriptions(access);
  const accounts = listAccounts(access).filter(({ print_metadata }) => print_metadata);
  const licensees = new Set(accounts.map(({ id }) => id));
  const isEnabled = (contentType: ContentType) => enabled.includes(TYPE_RULES[contentType].export);
  return {
    streams: subscriptions.flatMap(({ id, content_types }) =>
      content_types.filter(isEnabled).map((contentType) => streamName(id, contentType)),
    ),
    licensed: subscriptions.filter(({ account_id }) => licensees.has(account_id)).map(({ id }) => id),
  };
}

export type AccessConnection = ReturnType<typeof openAccessConnection>;

export function openAccessConnection(folder: DataFolder) {
  const db = marked(() => openDatabase(folder.access, 'write', ACCESS_SCHEMA));
  marked(() => auditChanges(db, folder, { operation: { kind: 'ingest' } }));
  return {
    /** Reads or changes it, so that no error remains without its mark. */
    use: <Result>(work: (access: Database) => Result): Result => marked(() => work(db)),
    close: () => void db.close(),
  };
}

/** Whether an error, also one that comes from the thread, is of access.db. */
export const isOfAccess = (error: Error): boolean => 'database' in error && error.database === NAME;

function marked<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof Error ? Object.assign(error, { database: NAME }) : error;
  }
}
