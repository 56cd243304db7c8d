/**
 * The alerts: their names, which of them need someone now, and what to do about each. README and manual are held
 * to this table.
 *
 * Every alert closes by itself when its cause is gone; `closes` says when that is.
 */
import { formatMs } from '../time.ts';

interface AlertKind {
  /** Whether it needs someone now: health is 503 while it is open. */
  readonly page_worthy: boolean;
  readonly opens: string;
  readonly closes: string;
  readonly what_to_do: string;
}

export const ALERTS = {
  'ingest stalled': {
    page_worthy: true,
    opens:
      'the newest finished window of an export ended more than 45 minutes ago (looked at every five minutes)',
    closes: 'a newer window is finished, or ingest is paused',
    what_to_do:
      'See whether the writer of the export still drops files (a window without finds needs an empty file), and what waits or failed with: wirewatch ingest status',
  },
  'ingest stopped': {
    page_worthy: true,
    opens: 'a fault ended the thread that ingests; reads go on',
    closes: 'the appliance is started again; where access.db was the cause, it can be read again',
    what_to_do: 'Find the cause in the log, mend it, and restart the appliance. What was committed stays.',
  },
  'disk full': {
    page_worthy: true,
    opens: 'a write found no room; ingest waits, reads go on',
    closes: 'a write succeeds again; ingest goes on by itself within ten seconds',
    what_to_do: 'Make room on the disk of the data folder and of the drop folder. Nothing is lost.',
  },
  'database damaged': {
    page_worthy: true,
    opens:
      'detections.db holds what was not written into it: SQLite finds it malformed, a page of the change stream would lack a row, another file is in its place, or a check against the log ([verify] every_hours, or "wirewatch verify") found a difference. Ingest stops, and detections are answered with 500',
    closes: 'the appliance is started again',
    what_to_do:
      'Restart the appliance: it makes the database anew from its log, and nothing is lost. Check the disk. Where the start refuses since the log is damaged too, restore a backup: wirewatch restore BACKUP --replace',
  },
  'log damaged': {
    page_worthy: true,
    opens:
      'a check ([verify] every_hours, or "wirewatch verify") found a part of the log missing or changed. Ingest and reads go on; but detections.db could not be made from this log',
    closes: 'the log is begun anew, or a later check finds nothing',
    what_to_do:
      'Stop the appliance and restore the backup over it (wirewatch restore BACKUP --replace): damaged parts are filled from the backup, and what the log has beyond it is kept. Without a backup, copy the data folder to a safe place and begin the log anew from the database (wirewatch rebuild --log). Check the disk.',
  },
  'database not readable': {
    page_worthy: true,
    opens: 'detections.db cannot be read',
    closes: 'it can be read again',
    what_to_do: 'Check the disk and the rights of the data folder; the detail has the cause.',
  },
  'drop folder not readable': {
    page_worthy: true,
    opens: 'the drop folder, or .taken in it, cannot be listed',
    closes: 'it can be listed again',
    what_to_do:
      'See that the folder is there (and mounted), with its own folders in it, and give the user of the appliance the right to read it. To begin a new one, restart the appliance.',
  },
  'drop folder not writable': {
    page_worthy: true,
    opens: 'files cannot be moved out of the drop folder or into its own folders; none is read',
    closes: 'they can be moved again',
    what_to_do: 'Give the user of the appliance the right to write to the folder and to those in it.',
  },
  'keys cannot be checked': {
    page_worthy: true,
    opens: 'access.db cannot be read; clients get 503',
    closes: 'it can be read again',
    what_to_do:
      'Check the rights and the disk of the data folder, or stop the appliance and restore over it: wirewatch restore BACKUP --replace',
  },
  'failed windows': {
    page_worthy: false,
    opens: 'the file of a window could not be read',
    closes: 'the window was reset and is done',
    what_to_do:
      'Read the reason beside the file in failed/, have it fixed, drop it, and reset the window ([ingest] failed_windows = "read" does that by itself).',
  },
  'late windows': {
    page_worthy: false,
    opens: 'a window is an hour overdue, and a later window of its export was read',
    closes: 'the files are read; a day after they were due, the windows are missing',
    what_to_do:
      'Ask the writer of the export for the files. They are read when they arrive. What waits in the drop folder is listed by: wirewatch ingest status',
  },
  'missing windows': {
    page_worthy: false,
    opens:
      'the file of a window had not arrived a day after it was due (checked once a day, at every start, and after the clock was corrected)',
    closes: 'the files arrive; after 30 days the windows are abandoned',
    what_to_do: 'Ask the writer of the export for the files. They are read when they arrive.',
  },
  'abandoned windows': {
    page_worthy: false,
    opens: 'a window was missing for 30 days and is no longer looked for',
    closes: 'the windows were accepted and are done, or after seven days',
    what_to_do:
      'Nothing, where the files do not exist. One that still comes is held until the window is accepted.',
  },
  'held windows': {
    page_worthy: false,
    opens: 'a file came for a window that is failed or abandoned, and waits in held/',
    closes: 'the window was reset or accepted and is done',
    what_to_do: 'Have the held file read.',
  },
  'failed files': {
    page_worthy: false,
    opens: 'a backfill failed, or a second file of a window that is done (it stays done)',
    closes: 'a later file of the same window or label is applied, or after a day',
    what_to_do: 'Read the reason beside the file in failed/, have it mended, and drop it again.',
  },
  'refused files': {
    page_worthy: false,
    opens:
      'a dropped file was refused: its name is not one of an export, its window is more than a day ahead, or its export is switched off',
    closes: 'after a day',
    what_to_do:
      'Read the reason beside the file in refused/, and have it dropped again under a right name. Files that were dropped by mistake can be deleted.',
  },
  'file stuck': {
    page_worthy: false,
    opens: 'a file in the drop folder cannot be read or moved; it is tried again every ten seconds',
    closes: 'it could be dealt with, or is gone',
    what_to_do: 'Give the user of the appliance the right to read the file and to move it.',
  },
  'rows skipped': {
    page_worthy: false,
    opens:
      'rows of a file were left out: of subscriptions or content types that are not there, or bad ones under bad_rows = "skip"',
    closes: 'after a day; for unknown subscriptions also when they were added and the files replayed',
    what_to_do:
      'See which with "wirewatch ingest explain NAME". Add the subscription, then run "wirewatch ingest replay". Bad rows are in NAME.skipped.ndjson beside the archived file.',
  },
  'disk getting full': {
    page_worthy: false,
    opens: 'less than a twentieth of the disk and less than 10 GiB is free, or less than 512 MiB',
    closes: 'there is more room',
    what_to_do: 'Make room on the disk, or delete old files from archive/ by [ingest] archive_days.',
  },
  'certificate expires': {
    page_worthy: false,
    opens:
      'the certificate of [server] tls_certificate expires within 14 days (or the last third of its time, where that is shorter), has expired, or is not valid yet',
    closes: 'a renewed certificate lies in its place; it is taken into use within seconds',
    what_to_do:
      'Renew the certificate and write it, with its key, over the files that are set; no restart is needed. If that was done, see the log for why it is not used.',
  },
  'certificate not usable': {
    page_worthy: false,
    opens:
      'the files of [server] tls_certificate and tls_key have changed, and are no pair or cannot be read; the pair from before stays in use',
    closes: 'a good pair lies in their place, or the one that is in use',
    what_to_do:
      'The detail says which file, and why. Put a good pair in place, with the right to read it for the user of the appliance: until then nothing is renewed, and a restart would fail.',
  },
  'proxy not trusted': {
    page_worthy: false,
    opens:
      'a request with X-Forwarded-For came from an internal address (this machine or a private network) that [server] trusted_proxies does not name. Behind that proxy all clients count as one address: one of them can use up the limits of all, and addresses of keys are compared with the address of the proxy',
    closes: 'the appliance is started again',
    what_to_do:
      'Add the address of the proxy to [server] trusted_proxies and restart the appliance. Where it is no proxy, find out what sends the header.',
  },
  'backup overdue': {
    page_worthy: false,
    opens:
      'the last scheduled backup failed, or is older than one and a half times [backup] every_minutes and five minutes. The detail says when the newest was made, and when a restore from it was last rehearsed',
    closes: 'a scheduled backup succeeds',
    what_to_do:
      'The detail has the cause. Make room in the folder of [backup] folder, or see that it is there and can be written to. To have a backup at once: wirewatch backup FOLDER',
  },
  'backup not restorable': {
    page_worthy: false,
    opens: 'the scheduled backup is read through once a day, and a part of it is damaged',
    closes: 'it is read through and is good, or the appliance is started again',
    what_to_do:
      'Run "wirewatch verify" for the data folder. If that is sound, delete the damaged file from the backup: the next run copies it again. Check the disk of [backup] folder.',
  },
  'end of log lost': {
    page_worthy: false,
    opens:
      'a client came with a cursor that this installation signed, for a position that its log does not have: an older data folder was put back. Versions were raised by 1,000, once, positions go on a year ahead, and archived files without a record are read again, so that clients lose nothing',
    closes: 'the appliance is started again',
    what_to_do:
      'Find out who put the folder back. If the newer one still exists, stop the appliance and put that one in its place, before clients go on. Otherwise do nothing: clients go on by themselves.',
  },
  'clock wrong': {
    page_worthy: false,
    opens: 'the clock shows a time before the newest finished window ended',
    closes: 'it has passed that time',
    what_to_do:
      'Set the clock, and see that it is kept by NTP. If the clock is right, check the clock of the writer of the exports, and that it names windows in UTC.',
  },
} as const satisfies Record<string, AlertKind>;

export type AlertName = keyof typeof ALERTS;

/** An alert that is open. */
export interface Alert {
  readonly name: AlertName;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly detail: string;
  /** In place of what the table says, where more is known. */
  readonly what_to_do?: string;
}

/** As it is shown. */
export interface AlertDocument {
  readonly name: AlertName;
  readonly page_worthy: boolean;
  readonly since: string;
  readonly detail: string;
  readonly what_to_do: string;
}

const DETAIL_CHARACTERS_MAX = 500;

export function alertDocument({ name, since, detail, what_to_do }: Alert): AlertDocument {
  const kind: AlertKind = ALERTS[name];
  return {
    name,
    page_worthy: kind.page_worthy,
    since: formatMs(since),
    detail: detail.length > DETAIL_CHARACTERS_MAX ? `${detail.slice(0, DETAIL_CHARACTERS_MAX)}…` : detail,
    what_to_do: what_to_do ?? kind.what_to_do,
  };
}

export function isPageWorthy({ name }: Pick<Alert, 'name'>): boolean {
  const kind: AlertKind = ALERTS[name];
  return kind.page_worthy;
}

/** Those that need someone now first, then the oldest. */
export function inOrder(alerts: readonly Alert[]): Alert[] {
  return [...alerts].sort(
    (a, b) =>
      Number(isPageWorthy(b)) - Number(isPageWorthy(a)) || a.since - b.since || (a.name < b.name ? -1 : 1),
  );
}
