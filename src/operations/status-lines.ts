/** The status document as lines, for the command and for the console: what each says, and how it looks. Pure. */
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';
import type { Reach } from '../windows/reach.ts';
import type { Status } from './status.ts';

/** `mark`: how the console marks its state; a line without one only informs. */
export type Line = readonly [
  label: string,
  text: string,
  mark?: 'done' | 'warning' | 'failed' | 'held' | undefined,
];

/** What the status says of the reading of files. */
export function ingestOf({ health, database, ingest, exports }: Status) {
  return { paused_since: health.paused_since, unreadable: database.unreadable, ...ingest, exports };
}

export function statusIngestLines(status: Status): Line[] {
  const ingest = ingestOf(status);
  const lines = ingestLines(ingest, Date.parse(status.at));
  const { held, held_files } = ingest;
  const [first] = held_files;
  if (ingest.unreadable !== null || first === undefined) return lines;
  // With the command for the first one; `ingest status` lists the others.
  const more = held === 1 ? '' : ` and ${counted(held - 1, 'more file')}`;
  return [...lines, ['held', `${first.file}${more}: ${first.reason}. ${first.what_to_do}`, 'held']];
}

/** @param nowMs null: without how long ago */
export function ingestLines(shown: ReturnType<typeof ingestOf>, nowMs: number | null): Line[] {
  const { paused_since, unreadable, exports, ...ingest } = shown;
  if (unreadable !== null) return [['ingest', `detections.db cannot be read: ${unreadable}`, 'failed']];
  const { waiting, waiting_files, waits_for, reading, applying } = ingest;
  const reach = EXPORT_NAMES.map((name): Line => {
    const { enabled, newest_done } = exports[name];
    const ago = newest_done === null || nowMs === null ? '' : `, ${age(nowMs - Date.parse(newest_done))} ago`;
    return [name, enabled ? reachText(exports[name], ago) : 'switched off'];
  });
  const more = waiting > waiting_files.length ? [`${grouped(waiting - waiting_files.length)} more`] : [];
  const names = waiting === 0 ? '' : `: ${[...waiting_files, ...more].join(', ')}`;
  const reason = waits_for === null || paused_since !== null ? '' : `; ${waits_for.reason}`;
  return [
    paused_since === null
      ? ['ingest', 'not paused']
      : ['ingest', `paused since ${paused_since}; resume with: wirewatch ingest resume`, 'held'],
    ...reach,
    ingest.drop_unreadable === null
      ? ['waiting', `${counted(waiting, 'file')} in ${ingest.drop}${names}${reason}`]
      : ['waiting', ingest.drop_unreadable, 'failed'],
    ...(reading === null
      ? []
      : [['reading', `${reading.file}: ${counted(reading.rows, 'row')} so far`] as const]),
    ...applying.map(({ file, rows, rows_applied }): Line => {
      return ['backfill', `${file}: ${grouped(rows_applied)} of ${counted(rows, 'row')}`];
    }),
  ];
}

/** @param ago how long ago that was, in words; empty to leave it out */
export function reachText({ newest_done, not_read }: Reach, ago = ''): string {
  const done = newest_done === null ? 'no window finished yet' : `read up to ${newest_done}${ago}`;
  const why = Object.entries(not_read).filter(([, windows]) => windows > 0);
  const kinds = why.map(([status, windows]) =>
    status === 'not_arrived'
      ? `${counted(windows, 'window')} not arrived`
      : counted(windows, `${status} window`),
  );
  return kinds.length === 0 ? done : `${done}, except ${kinds.join(', ')}`;
}

export function keysText({ keys, at }: Status): string {
  const { active, used_in_last_day, last_used_at, behind, unreadable } = keys;
  if (unreadable !== null) return `access.db cannot be read: ${unreadable}`;
  const last = last_used_at === null ? 'no recorded use' : `last used ${since(last_used_at, at)}`;
  const late = behind === 0 ? '' : `; ${counted(behind, 'follower')} more than two hours behind`;
  return `${grouped(active)} active, ${grouped(used_in_last_day)} used in the last 24 hours; ${last}${late}`;
}

const ROLES = {
  writer: 'writer: it reads the exports',
  standby: 'standby: it follows the copy, and serves reads',
  superseded: 'superseded: another machine took over',
} as const;

const gib = (bytes: number) => (bytes / 1024 ** 3).toFixed(1);

export function systemLines(status: Status): Line[] {
  return [
    ...status.disks.map(({ folder, free_bytes, bytes, low }): Line => {
      const free = `${gib(free_bytes)} of ${gib(bytes)} GiB free`;
      return low
        ? ['disk', `${free}, getting full (${folder})`, 'warning']
        : ['disk', `${free} (${folder})`, 'done'];
    }),
    ['role', ROLES[status.role], status.role === 'superseded' ? 'failed' : undefined],
    copyLine(status),
    verifiedLine(status),
  ];
}

function copyLine({ copy, running, role, at }: Status): Line {
  if (copy === null) return ['copy', running ? 'none; see the setting [copy] to' : 'not known while stopped'];
  const { to, entries_behind, behind_since, contact_at, failure } = copy;
  if (failure !== null)
    return ['copy', `cannot be ${role === 'standby' ? 'read' : 'written'}: ${failure}`, 'failed'];
  if (contact_at === null) return ['copy', `beginning (${to})`];
  if (behind_since === null) return ['copy', `up to date (${to})`, 'done'];
  const entries = counted(entries_behind ?? 0, 'entry', 'entries');
  return ['copy', `${entries} behind since ${since(behind_since, at)} (${to})`, 'warning'];
}

function verifiedLine({ scrub, at }: Status): Line {
  if (scrub === null) return ['verified', 'not yet'];
  const { findings, not_compared } = scrub;
  const when = since(scrub.at, at);
  if (findings > 0) return ['verified', `${when}: ${counted(findings, 'difference')}`, 'failed'];
  if (not_compared !== null) return ['verified', `${when}; not compared: ${not_compared}`, 'warning'];
  return ['verified', when, 'done'];
}

const since = (from: string, at: string): string => `${from}, ${age(Date.parse(at) - Date.parse(from))} ago`;

function age(ms: number): string {
  const units = Object.entries({ day: DAY_MS, hour: HOUR_MS, minute: MINUTE_MS });
  const [name, unit] = units.find(([, length]) => ms >= length) ?? ['second', 1000];
  return counted(Math.max(0, Math.floor(ms / unit)), name);
}
