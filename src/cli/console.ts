/** `wirewatch console`: a link into the console of the running Wirewatch. */
import type { Command } from 'commander';
import { LINK_MS, makeLink, type Person } from '../admin/console/sessions.ts';
import { endConsoleSessions, readConsoleEpoch } from '../auth/console-sessions.ts';
import { readName } from '../config/option-values.ts';
import { type Actor, actorText } from '../history/actor.ts';
import type { Operation } from '../history/format.ts';
import { openAccess } from '../history/open-access.ts';
import { noteOperation } from '../history/operation-note.ts';
import { Refused } from '../refused.ts';
import type { Database } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { isLocked } from '../store/locks.ts';
import { type NotedConsole, readNotedConsole } from '../store/noted-address.ts';
import { readSecret } from '../store/secret.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { withAccess } from './access.ts';
import { defineCommand, option, type Result, type ValuesOf } from './command.ts';
import { configOf, folderOf, requireInstallation } from './installation.ts';
import { operationOf } from './operation.ts';

const OPTIONS = [
  option('--as <name>', 'name shown beside the user in the audit trail', readName),
  option('--read-only', 'a session that shows everything and can change nothing'),
  option('--end-all', 'end every session, and every link that was not used yet'),
];

export const register = defineCommand({
  options: OPTIONS,
  examples: ['console', 'console --as "Ada Lovelace" --read-only', 'console --end-all'],
  run(values, self) {
    if (values.endAll === true && (values.as !== undefined || values.readOnly !== undefined))
      throw new Refused('usage', '--end-all makes no link: leave out --as and --read-only.');
    const config = configOf(self);
    requireInstallation(config);
    return values.endAll === true ? endAll(self) : makeConsoleLink(self, folderOf(config), values);
  },
});

function endAll(command: Command): Result {
  withAccess(command, (access) => endConsoleSessions(access, Date.now()));
  return {
    value: { ended: true },
    text: 'Every session of the console has ended. A new one begins with: wirewatch console',
  };
}

function makeConsoleLink(
  command: Command,
  folder: DataFolder,
  { as, readOnly = false }: ValuesOf<typeof OPTIONS>,
): Result {
  const nowMs = Date.now();
  // Before it acts as the owner of the data folder.
  const { actor, sudo_user } = operationOf(command);
  const by = { actor, ...(sudo_user && { sudo_user }), ...(as && { as }) };
  const person = { by, read_only: readOnly };
  const url = withAccess(command, (access) => linkInto(consoleOf(folder), folder, access, person, nowMs));
  return {
    value: { url, name: actorText(by), read_only: readOnly, expires_at: formatMs(nowMs + LINK_MS) },
    text: `${url}\n\nOpen it in a browser within ${LINK_MS / MINUTE_MS} minutes: it works once, and begins a session of twelve hours for ${actorText(by)}${readOnly ? ', read-only' : ''}.`,
  };
}

/** The link that `demo` and `lab` print, for the user who started them. */
export function linkOfStart(
  console: NotedConsole | null,
  folder: DataFolder,
  operation: Operation & Actor,
): string {
  if (console === null) throw new Error('a demonstration and a lab have a console');
  using access = openAccess(folder.root, { operation });
  const person = { by: { actor: operation.actor }, read_only: false };
  // Sessions follow the machine's clock, not that of a lab.
  return linkInto(console, folder, access, person, Date.now());
}

/** The audit trail has every link: whoever opens it acts in the name of the one who made it. */
function linkInto(
  { url, run }: NotedConsole,
  folder: DataFolder,
  access: Database,
  person: Person,
  nowMs: number,
): string {
  const { as = null } = person.by;
  const asked = { kind: 'console-link', as, read_only: person.read_only };
  noteOperation(access, asked, nowMs);
  const link = makeLink(readSecret(folder), person, { epoch: readConsoleEpoch(access), run }, nowMs);
  return `${url}/#login=${link}`;
}

/** @throws Refused `failed` if Wirewatch is not running, or its console is off */
function consoleOf(folder: DataFolder): NotedConsole {
  if (!isLocked(folder.serveLock))
    throw new Refused('failed', `Wirewatch is not running on ${folder.root}. Start it with: wirewatch serve`);
  const noted = readNotedConsole(folder.consoleAddress);
  if (noted !== null) return noted;
  throw new Refused(
    'failed',
    'the console is off. Set [admin] port, 9464 for example, and restart Wirewatch.',
  );
}
