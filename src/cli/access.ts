/** Opens the access database for a command, in the name of the user who runs it. */
import type { Command } from 'commander';
import { openAccess, type Recovered } from '../history/open-access.ts';
import { printable } from '../printable.ts';
import type { Database } from '../store/database.ts';
import { ensureFolder } from '../store/folder.ts';
import { keepInPlace } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { actorOfProcess } from './actor.ts';
import { commandFolder } from './installation.ts';

/**
 * Opens the access database of the command's data folder, updated to the end of its log. No restore replaces it before
 * it is closed.
 *
 * @param create whether a missing one is created
 */
export function openForCommand(command: Command, { create = false }: { create?: boolean } = {}) {
  const folder = commandFolder(command);
  const operation = { kind: 'command', command: command.name(), ...actorOfProcess() };
  requireOwner(folder);
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

/** Runs `work` on the access database of the command's data folder. */
export function withAccess<Result>(
  command: Command,
  work: (db: Database) => Result,
  options: { create?: boolean } = {},
): Result {
  using access = openForCommand(command, options);
  return work(access.db);
}
