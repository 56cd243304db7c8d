/**
 * The alerts: their names, which of them are urgent, and what to do about each. The manual is made from this table.
 *
 * Every alert closes by itself when its cause is gone, as `closes` says.
 */
import { printableLine } from '../printable.ts';
import { formatMs } from '../time.ts';

interface AlertKind {
  /** Urgent: health is 503 while it is open. */
  readonly page_worthy: boolean;
  readonly opens: string;
  readonly closes: string;
  readonly what_to_do: string;
}

export const ALERTS = {
  'ingest stalled': {
    page_worthy: true,
    opens:
      'the newest finished window of an export ended more than 45 minutes ago (checked every five minutes)',
    closes: 'a newer window is finished, or ingest is paused',
    what_to_do:
      'Check that the writer of the export still drops files. A window without detections needs an empty file. To see what is waiting or failed, run: wirewatch ingest status',
  },
  'ingest stopped': {
    page_worthy: true,
    opens: 'an unexpected error stopped ingest; clients can still read',
    closes: 'Wirewatch is restarted, or access.db becomes readable again if that was the cause',
    what_to_do: 'Find the cause in the log, fix it, and restart Wirewatch. Committed data is safe.',
  },
  'disk full': {
    page_worthy: true,
    opens: 'a write failed because the disk is full; ingest waits, and clients can still read',
    closes: 'a write succeeds again; ingest resumes automatically within ten seconds',
    what_to_do: 'Free space on the disks of the data folder and the drop folder. No data is lost.',
  },
  'database damaged': {
    page_worthy: true,
    opens:
      'detections.db is damaged or was replaced: SQLite reports it as malformed, a page of the change stream lacks a row, the path holds another file, or the comparison with the log ([verify] every_hours, or "wirewatch verify") found a difference. Ingest waits, requests for detections return 500, and Wirewatch makes the database anew from the log',
    closes: 'the database was made anew; nobody needs to do anything',
    what_to_do:
      'Check the disk. The database is made anew without a restart, and no data is lost. If "ingest stopped" opens because the log is damaged, too, restore a backup: wirewatch restore BACKUP --replace',
  },
  'log damaged': {
    page_worthy: true,
    opens:
      'verification ([verify] every_hours, or "wirewatch verify") found that part of the log is missing or changed. Ingest and reads continue, but detections.db could not be rebuilt from this log',
    closes: 'the log is written anew, or a later verification finds no damage',
    what_to_do:
      'Write the log anew from the database (wirewatch compact): it checks the database first, and loses nothing that it has. If it refuses, restore a backup (wirewatch restore BACKUP --replace): what came after it is lost, and archived files are read again. Check the disk.',
  },
  'database not readable': {
    page_worthy: true,
    opens: 'detections.db cannot be read',
    closes: 'it can be read again',
    what_to_do: 'Check the disk and the permissions of the data folder. The detail states the cause.',
  },
  'drop folder not readable': {
    page_worthy: true,
    opens: 'the drop folder, or the folder .taken in it, cannot be listed',
    closes: 'it can be listed again',
    what_to_do:
      'Check that the drop folder and its subfolders exist, are mounted, and can be read by the user that Wirewatch runs as. To create a new drop folder, restart Wirewatch.',
  },
  'drop folder not writable': {
    page_worthy: true,
    opens:
      'files cannot be moved out of the drop folder or into its subfolders, or another user can write to one of these; no file is read',
    closes: 'files can be moved again',
    what_to_do:
      'Run the command that the detail names. If it names none, give the user that Wirewatch runs as write permission on the drop folder and its subfolders.',
  },
  'data folder not writable': {
    page_worthy: true,
    opens:
      'nothing can be written to the data folder: its disk became read-only, as after an error, or this user lost the permission. No file is read; clients can still read what is there',
    closes: 'it can be written again',
    what_to_do:
      'Find the cause in the log of the system, make the disk writable, and restart Wirewatch. Until then, a key that you revoke is refused as long as this process runs, so revoke it again afterwards.',
  },
  'access.db replaced': {
    page_worthy: false,
    opens:
      'access.db was damaged, missing or older than its spare copy at the start, and the spare copy took its place',
    closes: 'Wirewatch is restarted',
    what_to_do:
      'Check the disk. Look whether the last changes of accounts and keys are there: wirewatch audit. A damaged file is kept as access.db-damaged; delete it when nobody needs it.',
  },
  'keys cannot be checked': {
    page_worthy: true,
    opens: 'access.db cannot be read; requests with a key return 503',
    closes: 'it can be read again',
    what_to_do:
      'Check the permissions and the disk of the data folder. If access.db is missing or damaged, restart Wirewatch: its spare copy takes its place, and no key is lost.',
  },
  'failed windows': {
    page_worthy: false,
    opens: 'the file of a window could not be read',
    closes: 'the window was reset and its file was read',
    what_to_do:
      'Read the reason next to the file in failed/. Fix the file, drop it again, and reset the window. With [ingest] failed_windows = "read", the window is reset automatically.',
  },
  'late windows': {
    page_worthy: false,
    opens: 'a window is an hour overdue, and a later window of the same export was read',
    closes: 'the files are read, or the windows become missing a day after they were due',
    what_to_do:
      'Ask the writer of the export for the files. They are read when they arrive. To list the files waiting in the drop folder, run: wirewatch ingest status',
  },
  'missing windows': {
    page_worthy: false,
    opens:
      'the file of a window had not arrived a day after it was due (checked once a day, at every start, and after the clock was corrected)',
    closes: 'the files are read, or the windows become abandoned after 30 days',
    what_to_do: 'Ask the writer of the export for the files. They are read when they arrive.',
  },
  'abandoned windows': {
    page_worthy: false,
    opens: 'a window was missing for 30 days and is no longer looked for',
    closes: 'the windows were accepted and their files were read, or seven days have passed',
    what_to_do:
      'If the files do not exist, do nothing. A file that still arrives is held until you accept its window.',
  },
  'held windows': {
    page_worthy: false,
    opens: 'a file in the drop folder is held, because its window has failed or was abandoned',
    closes: 'the window was reset or accepted and its file was read, or the file is gone',
    what_to_do:
      'Reset the failed window, or accept the abandoned one, to read the file. The detail gives the command.',
  },
  'failed files': {
    page_worthy: false,
    opens: 'a backfill failed, or a second file for a finished window failed (the window stays done)',
    closes: 'a later file for the same window or label is applied, or a day has passed',
    what_to_do:
      'Read the reason next to the file in failed/, or in "wirewatch ingest status". Fix the file and drop it again.',
  },
  'refused files': {
    page_worthy: false,
    opens:
      'a dropped file was refused: its name is not a valid export file name, its window is more than a day in the future, or its export is switched off',
    closes: 'a day has passed',
    what_to_do:
      'Read the reason next to the file in refused/. Drop the file again under a valid name, or delete it if it was dropped by mistake.',
  },
  'file stuck': {
    page_worthy: false,
    opens:
      'a file in the drop folder cannot be read or moved, and Wirewatch tries again every ten seconds; or a backfill is half applied and its export is switched off',
    closes: 'every such file was processed, or is gone',
    what_to_do:
      'Give the user that Wirewatch runs as permission to read and move the file. If an export is switched off, switch it on and restart: the rest of its backfill is then applied.',
  },
  'file changed after reading': {
    page_worthy: false,
    opens:
      'a file in archive/ was changed within three hours after it was read: its writer went on writing to it. It is read again, as a correction',
    closes: 'no file was changed for an hour',
    what_to_do:
      'Have the writer of the file write under a name that begins with a dot or ends in .tmp, .part or .partial, and rename the file once it is complete.',
  },
  'rows skipped': {
    page_worthy: false,
    opens:
      'rows of a file were skipped: their subscription or content type does not exist, or they are bad rows and bad_rows = "skip" is set',
    closes: 'a day has passed, or the missing subscriptions were added and the files were replayed',
    what_to_do:
      'To see which rows, run "wirewatch ingest explain NAME". For a missing subscription, add it, then run "wirewatch ingest replay". Bad rows are in NAME.skipped.ndjson next to the archived file.',
  },
  'disk getting full': {
    page_worthy: false,
    opens: 'less than 5% of the disk and less than 10 GiB are free, or less than 512 MiB',
    closes: 'there is more free space',
    what_to_do: 'Free space on the disk, or set [ingest] archive_days to delete old files from archive/.',
  },
  'certificate expires': {
    page_worthy: false,
    opens:
      'the certificate in [server] or [admin] tls_certificate expires within 14 days (or is in the last third of its lifetime, if that is shorter), has expired, or is not yet valid',
    closes: 'the file holds a renewed certificate; it is loaded within seconds',
    what_to_do:
      'Renew the certificate, and overwrite the configured certificate and key files. No restart is needed. If you already did so, the log says why the new certificate is not used.',
  },
  'certificate not usable': {
    page_worthy: false,
    opens:
      'the files in tls_certificate and tls_key of [server] or [admin] changed, but they do not match or cannot be read; the previous pair stays in use',
    closes: 'the files hold a valid pair again',
    what_to_do:
      'The detail says which file, and why. Install a valid pair that the user that Wirewatch runs as can read. Until then the certificate is not renewed, and a restart would fail.',
  },
  'proxy not trusted': {
    page_worthy: false,
    opens:
      'a request with X-Forwarded-For came from an internal address (this machine or a private network) that is not in [server] trusted_proxies. All clients behind that proxy count as one address: one of them can use up the limits of all, and the allowed addresses of keys are compared with the address of the proxy',
    closes: 'Wirewatch is restarted',
    what_to_do:
      'Add the address of the proxy to [server] trusted_proxies and restart Wirewatch. If the address is not a proxy, find out what sends the header.',
  },
  'backup overdue': {
    page_worthy: false,
    opens:
      'the last scheduled backup failed, or is older than 1.5 times [backup] every_minutes plus five minutes. The detail says when the newest backup was made',
    closes: 'a scheduled backup succeeds',
    what_to_do:
      'The detail states the cause. Check that the folder in [backup] folder exists, is writable, and has free space. To make a backup now, run: wirewatch backup FOLDER',
  },
  'end of log lost': {
    page_worthy: false,
    opens:
      'a client sent a valid cursor for a position that the log does not contain, which means that an older data folder was restored. So that clients miss nothing, versions were raised once by 1,000, positions continue a year ahead, and archived files without a record are read again',
    closes: 'Wirewatch is restarted',
    what_to_do:
      'Find out who restored the folder. If the newer folder still exists, stop Wirewatch and restore that one, before clients continue. Otherwise do nothing: clients continue automatically.',
  },
  'removal incomplete': {
    page_worthy: false,
    opens:
      'the rows of a removed subscription are still in the log: the disk has no room to write it anew, it cannot be read or written, or the database differs from it. No client sees these rows, and nobody can add the subscription again',
    closes: 'the rows are deleted from the log; Wirewatch tries again every hour, and at every start',
    what_to_do:
      'The detail states the cause. Free space on the disk of the data folder, or correct the permissions of log/ in it. If the database differs, restart Wirewatch. Then wait for an hour, or restart Wirewatch.',
  },
  'clock wrong': {
    page_worthy: false,
    opens: 'the clock is earlier than the end of the newest finished window',
    closes: 'the clock has passed that time',
    what_to_do:
      'Set the clock, and keep it synchronized with NTP. If the clock is right, check the clock of the writer of the exports, and check that it names windows in UTC.',
  },
} as const satisfies Record<string, AlertKind>;

export type AlertName = keyof typeof ALERTS;

/** An open alert. */
export interface Alert {
  readonly name: AlertName;
  /** Distinguishes open alerts of one name, such as those of two exports; empty if there is at most one. */
  readonly of: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** May change while the alert is open. */
  readonly detail: string;
  /** The command for this case, as a sentence that follows `what_to_do` of the table. */
  readonly command?: string;
}

/** An open alert as commands and the console show it. */
export interface AlertDocument {
  readonly name: AlertName;
  readonly page_worthy: boolean;
  readonly since: string;
  readonly detail: string;
  readonly what_to_do: string;
}

const DETAIL_CHARACTERS_MAX = 500;

export function alertDocument({ name, since, detail, command }: Alert): AlertDocument {
  const kind: AlertKind = ALERTS[name];
  // It may name a file that is not ours; the operator's command may mail it, or write it to a terminal.
  const shown = printableLine(detail);
  return {
    name,
    page_worthy: kind.page_worthy,
    since: formatMs(since),
    detail: shown.length > DETAIL_CHARACTERS_MAX ? `${shown.slice(0, DETAIL_CHARACTERS_MAX)}…` : shown,
    what_to_do: command === undefined ? kind.what_to_do : `${kind.what_to_do} ${command}`,
  };
}

/** Identifies an open alert, whatever its detail says. */
export function alertKey({ name, of }: Pick<Alert, 'name' | 'of'>): string {
  return `${name} ${of}`;
}

export function isPageWorthy({ name }: Pick<Alert, 'name'>): boolean {
  const kind: AlertKind = ALERTS[name];
  return kind.page_worthy;
}

/** Urgent alerts first, then by age, the oldest first. */
export function inOrder(alerts: readonly Alert[]): Alert[] {
  return [...alerts].sort(
    (a, b) =>
      Number(isPageWorthy(b)) - Number(isPageWorthy(a)) || a.since - b.since || (a.name < b.name ? -1 : 1),
  );
}
