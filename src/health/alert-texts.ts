/**
 * The alerts: their names, which of them are urgent, and what to do about each. Every alert closes by itself when its
 * cause is gone; the manual (alerts.md) says when each opens and closes.
 */
import { printableLine } from '../printable.ts';
import { formatMs } from '../time.ts';

/** What to do about each alert that needs someone now: health is 503 while it is open. */
const URGENT = {
  'ingest stalled':
    'Check that the writer of the export still drops files, an empty one if there are no detections. To see what is waiting or failed, run: wirewatch ingest status',
  'ingest stopped': 'Find the cause in the log, fix it, and restart Wirewatch. Committed data is safe.',
  'another machine took over':
    'Clients must be sent to that machine. To make this one its standby, stop Wirewatch, set [copy] standby, and run: wirewatch restore SRC --replace. To go on here, stop the other machine for good first. If the detail names this machine, an older data folder was copied back: restore again, without standby.',
  'disk full':
    'Free space on the disks of the data folder and the drop folder. Ingest then resumes by itself within ten seconds. No data is lost.',
  'database damaged':
    'Check the disk. No data is lost. If "ingest stopped" opens because the log is damaged, too, restore a backup: wirewatch restore BACKUP --replace',
  'log damaged':
    'Check the disk. If a copy is whole and ends with the newest entry, the log is rebuilt from it. Otherwise run "wirewatch compact", which rewrites it from the database and loses nothing. If that refuses, restore a backup (wirewatch restore BACKUP --replace): what came after it is lost.',
  'database not readable':
    'Check the disk and the permissions of the data folder. The detail states the cause.',
  'drop folder not readable':
    'Check that the folder exists, is mounted, and can be read by the user of Wirewatch. To create a new one, restart Wirewatch.',
  'drop folder not writable':
    'Run the command that the detail names. If it names none, give the user of Wirewatch write permission on the drop folder and its subfolders.',
  'data folder not writable':
    'Find the cause in the log of the system, make the disk writable, and restart Wirewatch. Then revoke again each key that you revoked meanwhile: only this process refuses it.',
  'keys cannot be checked':
    'Check the permissions and the disk of the data folder. If access.db is missing or damaged, restart Wirewatch: its spare copy takes its place, and no key is lost.',
};
const LATER = {
  'secret missing':
    'Before Wirewatch is restarted, copy the file "secret" from the copy or a backup into the data folder. Without it, there is no start.',
  'access.db replaced':
    'Check the disk, and whether the last changes of accounts and keys are there: wirewatch audit. A damaged file is kept as access.db-damaged; delete it when nobody needs it.',
  'failed windows':
    'Read the reason next to the file in failed/. If nobody can fix it, or it was dropped by mistake, accept the window without it. Otherwise, fix the file and drop it again.',
  'late windows':
    'Ask the writer of the export for the files. They are read when they arrive. To list the files waiting in the drop folder, run: wirewatch ingest status',
  'missing windows': 'Ask the writer of the export for the files. They are read when they arrive.',
  'abandoned windows':
    'If the files do not exist, do nothing. A file that still arrives is held until you accept its window.',
  'held windows':
    'Reset the failed window, or accept the abandoned one, to read the file. The detail gives the command.',
  'failed files':
    'Read the reason next to the file in failed/, or in "wirewatch ingest status". Fix the file and drop it again.',
  'refused files':
    'Read the reason next to the file in refused/. Drop the file again under a valid name, or delete it if it was dropped by mistake.',
  'file stuck':
    'Give the user of Wirewatch permission to read and move the file. If an export is switched off, switch it on and restart: the rest of its backfill is then applied.',
  'file changed after reading':
    'Have the writer of the file write under a name that begins with a dot or ends in .tmp, .part or .partial, and rename the file once it is complete.',
  'rows skipped':
    'To see which rows, run "wirewatch ingest explain NAME". Add a missing subscription, then run "wirewatch ingest replay". Bad rows are in NAME.skipped.ndjson next to the archived file.',
  'disk getting full':
    'Free space on the disk, or set [ingest] archive_days to delete old files from archive/.',
  'certificate expires':
    'Renew the certificate, and overwrite its files. No restart is needed. If you already did so, the log says why the new one is not used.',
  'certificate not usable':
    'The detail says which file, and why. Install a valid pair that the user of Wirewatch can read. Until then the previous pair stays in use, and a restart would fail.',
  'proxy not trusted':
    'Add the address of the proxy to [server] trusted_proxies and restart Wirewatch. If the address is not a proxy, find out what sends the header.',
  'copy behind':
    'The detail states the cause. Check the disk, the mount, or the service: Wirewatch tries again by itself. If the place has another copy, set [copy] to to another place, or move that copy away. Unless [copy] wait is set, nothing else stops.',
  'end of log lost':
    'Find out who restored the folder. If the newer folder still exists, stop Wirewatch and restore that one, before clients continue. Otherwise do nothing: clients continue.',
  'removal incomplete':
    'The detail states the cause. Free space on the disk of the data folder, or correct the permissions of log/ in it. If the database differs from the log, restart Wirewatch.',
  'clock wrong':
    'Set the clock, and keep it synchronized with NTP. If it is right, check that of the writer of the exports, and that it names windows in UTC.',
};

export type AlertName = keyof typeof URGENT | keyof typeof LATER;

export const ALERT_ADVICE: Readonly<Record<AlertName, string>> = { ...URGENT, ...LATER };

const isName = (name: string): name is AlertName => Object.hasOwn(ALERT_ADVICE, name);
export const ALERT_NAMES = Object.keys(ALERT_ADVICE).filter(isName);

export interface Alert {
  readonly name: AlertName;
  /** Distinguishes open alerts of one name, such as those of two exports; empty if there is at most one. */
  readonly of: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** May change while the alert is open. */
  readonly detail: string;
  /** The command for this case, as a sentence that follows `what_to_do` of the table. */
  readonly command?: string | undefined;
}

/** An open alert as commands and the console show it. */
export type AlertDocument = Readonly<ReturnType<typeof alertDocument>>;

const DETAIL_CHARACTERS_MAX = 500;

export function alertDocument({ name, of, since, detail, command }: Alert) {
  // It may name a file that is not ours; the operator's command may mail it, or write it to a terminal.
  const shown = printableLine(detail);
  return {
    name,
    page_worthy: isPageWorthy({ name, of }),
    since: formatMs(since),
    detail: shown.length > DETAIL_CHARACTERS_MAX ? `${shown.slice(0, DETAIL_CHARACTERS_MAX)}…` : shown,
    what_to_do: command === undefined ? ALERT_ADVICE[name] : `${ALERT_ADVICE[name]} ${command}`,
  };
}

export const alertKey = ({ name, of: subject }: Pick<Alert, 'name' | 'of'>) => `${name} ${subject}`;

/** What "copy behind" is about while ingest waits for the copy: then it needs someone now. */
export const HELD_UP_INGEST = 'ingest';

export const isPageWorthy = ({ name, of }: Pick<Alert, 'name'> & Partial<Pick<Alert, 'of'>>): boolean =>
  Object.hasOwn(URGENT, name) || (name === 'copy behind' && of === HELD_UP_INGEST);

/** Urgent alerts first, then by age, the oldest first. */
export function inOrder(alerts: readonly Alert[]): Alert[] {
  return [...alerts].sort(
    (a, b) =>
      Number(isPageWorthy(b)) - Number(isPageWorthy(a)) || a.since - b.since || (a.name < b.name ? -1 : 1),
  );
}
