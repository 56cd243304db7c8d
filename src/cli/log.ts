/** `wirewatch log`: the history of detections, or of accounts, subscriptions and keys. */
import { once } from 'node:events';
import { actorText } from '../history/actor.ts';
import { type AuditedChange, readTrail } from '../history/audit.ts';
import { type EntriesWanted, readEntries, timeOf } from '../history/entries.ts';
import { listSegments } from '../history/segment.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import type { DataFolder } from '../store/folder.ts';
import { parseInstant } from '../time.ts';
import { defineCommand, option, type ValuesOf } from './command.ts';
import { commandFolder } from './installation.ts';
import { commonOptions, readInstant } from './options.ts';

const OPTIONS = [
  option('--access', 'print the audit trail: who changed accounts, subscriptions and keys, or paused ingest'),
  option('--from <time>', 'only entries written at or after this time', readInstant),
  option('--to <time>', 'only entries written before this time', readInstant),
  option('--follow', 'keep printing new entries until stopped'),
];

type Values = ValuesOf<typeof OPTIONS>;

const HELP = `
Without --access, each line is one JSON object of the log: rows of exports, the detections that changed, windows and
files. The lines form entries, one for each transaction; the last line of an entry, {"commit":…}, has its number, its
time and the operation.

With --access, each line gives the time, the user of the operating system (and the user who called sudo), the command,
and the account, subscription or key that was changed, with its old and new values, or what was asked for. After
"console:" comes what was done from the console: the user is the one who made its link, and a name that the link was
given with --as follows in quotes. "start" in place of a command is a change made at a start because of the
configuration file. No line contains a key or its hash. With --json, each line is one JSON object with the members at,
entry, kind, command, actor, sudo_user, as, subject, id, change (added, changed, removed or asked for) and members
({"name":{"from":…,"to":…}}).`;

export const register = defineCommand({
  options: OPTIONS,
  help: HELP,
  examples: ['log --access', 'log --access --from 2026-11-01T00:00:00Z --json', 'log --follow'],
  async run(values, self) {
    const { access = false, follow = false } = values;
    if (follow && values.to !== undefined)
      throw new Refused('usage', '--follow and --to cannot be combined: leave one of them out');
    const folder = commandFolder(self);
    const path = access ? folder.accessLog : folder.log;
    if (!follow && listSegments(path).length === 0)
      throw new Refused(
        'configuration',
        `there is no log in ${path}. Name the data folder of the installation with --data.`,
      );
    if (access) await printAudit(folder, values, commonOptions(self).json);
    else await printLines(path, values);
    return null;
  },
});

async function printLines(path: string, options: Values): Promise<void> {
  for await (const entry of readEntries(path, 'detections', wantedOf(options))) {
    if (!isWanted(timeOf(entry), options)) continue;
    for (const lines of entry.lines()) await write(lines);
  }
}

async function printAudit(folder: DataFolder, options: Values, json: boolean): Promise<void> {
  for await (const changes of readTrail(folder, options.follow)) {
    const wanted = changes.filter(({ at }) => isWanted(parseInstant(at) ?? 0, options));
    await write(wanted.map((change) => printable(json ? JSON.stringify(change) : textOf(change))));
  }
}

function wantedOf({ from, follow }: Values): EntriesWanted {
  return { fromMs: from ?? 0, follow: follow === true };
}

function isWanted(ms: number, { from, to }: Values): boolean {
  return ms >= (from ?? 0) && ms < (to ?? Number.POSITIVE_INFINITY);
}

function textOf(audited: AuditedChange): string {
  const { at, kind, command, subject, id, change, members } = audited;
  const what = id === null ? subject : `${subject} ${id}`;
  const values = Object.entries(members).map(([name, { from, to }]) =>
    change === 'changed' ? `${name} ${valueText(from)} -> ${valueText(to)}` : `${name} ${valueText(to)}`,
  );
  const detail = change === 'removed' || values.length === 0 ? '' : `: ${values.join(', ')}`;
  const by = kind === 'console' ? `console: ${command}` : (command ?? kind);
  return `${at}  ${actorText(audited)}  ${by}  ${what} ${change}${detail}`;
}

function valueText(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return 'none';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value);
}

/** Waits for a slow reader, so that a long history does not fill the memory. */
async function write(lines: readonly string[]): Promise<void> {
  if (lines.length > 0 && !process.stdout.write(`${lines.join('\n')}\n`)) await once(process.stdout, 'drain');
}
