/** Links into the console of the running Wirewatch, and the end of its sessions. */
import { actorText } from '../auth/actor.ts';
import { noteOperation } from '../auth/audit.ts';
import {
  endConsoleSession,
  endConsoleSessions,
  LINK_MS,
  makeLink,
  type Person,
  readConsoleEpoch,
} from '../auth/console-sessions.ts';
import { readName } from '../config/option-values.ts';
import { failed, Refused } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { anyText, required, toggle, value } from './member.ts';
import { act, type Context } from './operation.ts';
import type { Outcome } from './problem.ts';

export const CONSOLE_OPERATIONS = [
  act('console', {
    summary: 'print a link into the console of the running Wirewatch; it works once, for ten minutes',
    members: {
      as: value(readName, { hint: 'name shown beside the user in the audit trail', placeholder: 'name' }),
      read_only: toggle('a session that shows everything and can change nothing'),
      end_all: toggle('end every session, and every link that was not used yet'),
    },
    examples: ['console', 'console --as "Ada Lovelace" --read-only', 'console --end-all'],
    run(context, { as, read_only, end_all = false }): Outcome {
      if (!end_all) return linkInto(context, { as, read_only });
      if (as !== undefined || read_only !== undefined)
        throw new Refused('usage', '--end-all makes no link: leave out --as and --read-only.');
      context.change((access) => endConsoleSessions(access, Date.now()));
      return {
        value: { ended: true },
        done: 'Every session of the console has ended. A new one begins with: wirewatch console',
      };
    },
  }),
  act('session end', {
    summary: 'end a session of the console',
    members: { id: required(value(anyText, { hint: 'id of the session', isSecret: true })) },
    examples: [],
    hasCommand: false,
    run(context, { id }) {
      // Sessions follow the machine's clock, not that of a lab.
      const nowMs = Date.now();
      // A standby's access.db is the writer's: there only the process remembers it.
      if (context.live?.role === 'writer')
        context.change((access) =>
          writing(access, () => {
            endConsoleSession(access, id, nowMs);
            noteOperation(access, { kind: 'session-end' });
          }),
        );
      return { value: { ended: true }, done: 'The session has ended.' };
    },
  }),
];

/**
 * The audit trail of the writer has every link: whoever opens it acts in the name of the one who made it. On a standby,
 * where nothing can be changed, the log has the beginning of the session.
 */
function linkInto(
  { folder, live, by: user, access: reader, change, remember }: Context,
  { as, read_only = false }: { readonly as: string | undefined; readonly read_only: boolean | undefined },
) {
  const { url, role } = consoleOf(folder.root, live);
  const by = { ...user, ...(as !== undefined && { as }) };
  const person: Person = { by, read_only };
  const nowMs = Date.now();
  const made = (access: Database) => makeLink(person, readConsoleEpoch(access), nowMs);
  const noted = (access: Database) => {
    const asked = { kind: 'console-link', as: as ?? null, read_only };
    noteOperation(access, asked);
    return made(access);
  };
  const link = role === 'writer' ? change(noted) : made(reader());
  remember(link);
  const value = {
    url: `${url}/#login=${link.id}`,
    name: actorText(by),
    read_only,
    expires_at: formatMs(nowMs + LINK_MS),
  };
  return {
    value,
    done: value.url,
    next: [
      `Open it in a browser within ${LINK_MS / MINUTE_MS} minutes: it works once, and begins a session of twelve hours for ${value.name}${read_only ? ', read-only' : ''}.`,
    ],
  };
}

/** @throws Refused `failed` if Wirewatch is not running, or its console is off */
function consoleOf(root: string, live: Context['live']) {
  if (live === null) throw failed(`Wirewatch is not running on ${root}. Start it with: wirewatch serve`);
  if (live.console !== null) return { ...live.console, role: live.role };
  throw failed('the console is off. Set [admin] port, 9464 for example, and restart Wirewatch.');
}
