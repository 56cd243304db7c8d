/** `wirewatch console`: a link into the console of the running appliance. */

import type { Command } from 'commander';
import { LINK_MS, makeLink } from '../admin/console/sessions.ts';
import { endConsoleSessions, readConsoleEpoch } from '../auth/console-sessions.ts';
import { Refused } from '../refused.ts';
import { openDatabase } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { readNoted } from '../store/noted-address.ts';
import { readSecret } from '../store/secret.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { nameValue, withAccess } from './access.ts';
import { configOf, folderOf, requireInstallation } from './config.ts';
import { operationOf } from './operation.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

interface ConsoleOptions {
  readonly as?: string;
  readonly readOnly?: boolean;
  readonly endAll?: boolean;
}

export function register(command: Command): void {
  command
    .option('--as <name>', 'name of the person, for the audit trail (default: this user)', nameValue)
    .option('--read-only', 'a session that can look at everything and change nothing')
    .option('--end-all', 'end every session, and every link that was not used yet')
    .action((options: ConsoleOptions, self: Command) => {
      if (options.endAll === true) endAll(self, options);
      else printLink(self, options);
    });
  addExamples(command, ['console', 'console --as "Ada Lovelace" --read-only', 'console --end-all']);
}

/** The epoch to which links belong now. */
export function readEpoch({ access }: DataFolder): number {
  const db = openDatabase(access, 'read');
  try {
    return readConsoleEpoch(db);
  } finally {
    db.close();
  }
}

function endAll(command: Command, { as, readOnly }: ConsoleOptions): void {
  if (as !== undefined || readOnly !== undefined)
    throw new Refused('usage', '--end-all makes no link: give it without --as and --read-only.');
  requireInstallation(configOf(command));
  withAccess(command, (access) => endConsoleSessions(access, Date.now()));
  const text = 'Every session of the console has ended. A new one begins with: wirewatch console';
  print({ ended: true }, { json: commonOptions(command).json, text });
}

function printLink(command: Command, { as, readOnly = false }: ConsoleOptions): void {
  const config = configOf(command);
  requireInstallation(config);
  const folder = folderOf(config);
  const epoch = withAccess(command, readConsoleEpoch);
  const nowMs = Date.now();
  const { SUDO_USER } = process.env;
  const user = SUDO_USER === undefined || SUDO_USER === '' ? operationOf(command).actor : SUDO_USER;
  const person = { name: as ?? String(user), read_only: readOnly };
  const url = linkInto(addressOf(folder), folder, person, { epoch, nowMs });
  print(
    { url, ...person, expires_at: formatMs(nowMs + LINK_MS) },
    {
      json: commonOptions(command).json,
      text: `${url}\n\nOpen it in a browser within ${LINK_MS / MINUTE_MS} minutes: it works once, and begins a session of twelve hours for ${person.name}${readOnly ? ', which can only look' : ''}.`,
    },
  );
}

/** @param url of the console */
export function linkInto(
  url: string,
  folder: DataFolder,
  person: { readonly name: string; readonly read_only: boolean },
  { epoch, nowMs }: { readonly epoch: number; readonly nowMs: number },
): string {
  return `${url}/#login=${makeLink(readSecret(folder), person, epoch, nowMs)}`;
}

/** @throws Refused `failed` where no appliance runs, or its console is off */
export function addressOf(folder: DataFolder): string {
  if (!isLocked(folder.serveLock))
    throw new Refused('failed', `Wirewatch is not running on ${folder.root}. Start it with: wirewatch serve`);
  const url = readNoted(folder.consoleAddress);
  if (url !== null) return url;
  throw new Refused(
    'failed',
    'the console is off. Set [admin] port, 9464 for example, and restart Wirewatch.',
  );
}
