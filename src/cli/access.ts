/** Opens the access database for a command, in the name of the user who runs it. */
import type { Command } from 'commander';
import { openAccess, type Recovered } from '../history/open-access.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import type { Database } from '../store/database.ts';
import { ensureFolder } from '../store/folder.ts';
import { keepInPlace } from '../store/locks.ts';
import { withReserve } from '../store/reserve.ts';
import { commandFolder } from './installation.ts';
import { operationOf } from './operation.ts';

/** An open access database; no restore replaces it before it is closed. */
export interface OpenAccess {
  readonly db: Database;
  close(): void;
}

/**
 * Opens the access database of the command's data folder, updated to the end of its log.
 *
 * @param create whether a missing one is created
 */
export function openForCommand(command: Command, { create = false }: { create?: boolean } = {}): OpenAccess {
  const folder = commandFolder(command);
  const operation = operationOf(command);
  actAsOwner(folder);
  if (create) ensureFolder(folder);
  const release = keepInPlace(folder, true);
  try {
    const db = openAccess(folder.root, { create, operation, onRecovered: reportRecovery });
    return {
      db,
      close() {
        db.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

function reportRecovery(recovered: Recovered): void {
  const message =
    recovered.kind === 'brought up'
      ? 'access.db was older than its log and has been updated from it'
      : `access.db was rebuilt from its log: ${printable(recovered.reason)}`;
  process.stderr.write(`wirewatch: ${message}\n`);
}

/**
 * Runs `work` on the access database of the command's data folder.
 *
 * @param create whether a missing one is created
 * @param urgent must work even on a full disk: gives up the disk space that is reserved for that
 */
export function withAccess<Result>(
  command: Command,
  work: (db: Database) => Result,
  { create = false, urgent = false }: { create?: boolean; urgent?: boolean } = {},
): Result {
  const run = () => {
    const { db, close } = openForCommand(command, { create });
    try {
      return work(db);
    } finally {
      close();
    }
  };
  return urgent ? withReserve(commandFolder(command), run) : run();
}

/** @throws Refused `usage` if a `set` command has no option */
export function requireChanges(command: Command): void {
  if (Object.keys(command.opts()).length > 0) return;
  throw new Refused(
    'usage',
    `nothing to change: give at least one option. See: wirewatch ${command.parent?.name()} set --help`,
  );
}
