/** Links into the console of the running Wirewatch, and the end of all its sessions. */
import { actorText } from '../auth/actor.ts';
import { LINK_MS, makeTicket } from '../auth/console-sessions.ts';
import { readName } from '../config/option-values.ts';
import { failed, misused } from '../refused.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { toggle, value } from './member.ts';
import { act, type Context, noted } from './operation.ts';
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
      if (!end_all) return linkInto(context, as, read_only ?? false);
      if (as !== undefined || read_only !== undefined)
        throw misused('--end-all makes no link: leave out --as and --read-only.');
      if (mayNote(context)) noted(context, { kind: 'console-end-all' });
      // Of one that does not run, they ended with it.
      context.running?.endSessions();
      const done = 'Every session of the console has ended. A new one begins with: wirewatch console';
      return { value: { ended: true }, done };
    },
  }),
];

/** On a standby, where nothing can be changed, only the log has the beginning of a session. */
const mayNote = ({ live }: Context): boolean => live === null || live.role === 'writer';

/**
 * The audit trail has every link: whoever opens it acts in the name of the one who made it.
 * @throws Refused `failed` if Wirewatch is not running, or its console is off
 */
function linkInto(context: Context, as: string | undefined, read_only: boolean) {
  const { folder, live } = context;
  if (live === null)
    throw failed(`Wirewatch is not running on ${folder.root}. Start it with: wirewatch serve`);
  if (live.console === null)
    throw failed('the console is off. Set [admin] port, 9464 for example, and restart Wirewatch.');
  const by = { ...context.by, ...(as !== undefined && { as }) };
  if (mayNote(context)) noted(context, { kind: 'console-link', as: as ?? null, read_only });
  const nowMs = Date.now();
  const link = makeTicket({ by, read_only }, nowMs);
  context.running?.remember(link);
  const url = `${live.console.url}/#login=${link.token}`;
  const value = { url, name: actorText(by), read_only, expires_at: formatMs(nowMs + LINK_MS) };
  return {
    value,
    done: url,
    next: [
      `Open it in a browser within ${LINK_MS / MINUTE_MS} minutes: it works once, and begins a session of twelve hours for ${value.name}${read_only ? ', read-only' : ''}.`,
    ],
  };
}
