/** The audit trail: who changed which account, subscription, key or window, and when. */
import { actorText } from '../auth/actor.ts';
import { type AuditedChange, readTrail } from '../auth/audit.ts';
import { instant, requireSpan } from './member.ts';
import { reading } from './operation.ts';

export const AUDIT = reading('audit', {
  summary: 'print the audit trail: who changed which account, subscription, key or window, and when',
  help: `Each line gives the time, the user of the operating system (and the user who called sudo), the command, and
the account, subscription or key that was changed, with its old and new values, or what was asked for. After "console:"
or "api:" comes what was done from the console or through the administration API: the user is the one who made the link,
and a name that the link was given with --as follows in quotes. "start" in place of a command is a change made at a start
because of the configuration file. No line contains a key or its hash. With --json, each entry has the members at, entry,
kind, command, actor, sudo_user, as, subject, id, change (added, changed, removed or asked for) and members
({"name":{"from":…,"to":…}}).`,
  members: {
    from: instant('only entries written at or after this time'),
    to: instant('only entries written before this time'),
  },
  examples: ['audit', 'audit --from 2026-11-01T00:00:00Z --json'],
  run({ access }, span) {
    requireSpan(span.from, span.to);
    const { changes, damage } = readTrail(access(), span);
    return { value: changes, warning: damage, failed: damage !== null };
  },
  text: (changes) => (changes.length === 0 ? 'No entries.' : changes.map(textOf).join('\n')),
});

function textOf(audited: AuditedChange): string {
  const { at, kind, command, subject, id, change, members } = audited;
  const what = id === null ? subject : `${subject} ${id}`;
  const values = Object.entries(members).map(([name, { from, to }]) =>
    change === 'changed' ? `${name} ${valueText(from)} -> ${valueText(to)}` : `${name} ${valueText(to)}`,
  );
  const detail = change === 'removed' || values.length === 0 ? '' : `: ${values.join(', ')}`;
  const by = kind === 'console' || kind === 'api' ? `${kind}: ${command}` : (command ?? kind);
  return `${at}  ${actorText(audited)}  ${by}  ${what} ${change}${detail}`;
}

function valueText(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return 'none';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value);
}
