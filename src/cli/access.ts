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

/**
 * Opens the access database of the command's data folder, updated to the end of its log. No restore replaces it before
 * it is closed.
 *
 * @param create whether a missing one is created
 */
export function openForCommand(command: Command, { create = false }: { create?: boolean } = {}) {
  const folder = commandFolder(command);
  const operation = operationOf(command);
  actAsOwner(folder);
  if (create) ensureFolder(folder);
  using opening = new DisposableStack();
  opening.defer(keepInPlace(folder, true));
  const db = opening.use(openAccess(folder.root, { create, operation, onRecovered: reportRecovery }));
  const open = opening.move();
  return { db, [Symbol.dispose]: () => open.dispose() };
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
    using access = openForCommand(command, { create });
    return work(access.db);
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
