/** Manual, topic `backup`; what `verify` looks at is made from its own table. */
import { CHECKS } from '../backup/findings.ts';
import { fenced, page, paragraph, points, wrapped } from './text.ts';

export function backupText(): string {
  return page(
    'BACKUP',
    paragraph(`
      A backup is one tar file with detections.db, access.db, journal, secret and a manifest. It is made beside the
      running appliance, or without one, and holds each database as of one moment (SQLite's VACUUM INTO), without
      what was deleted before.`),
    fenced('sh', 'wirewatch backup /backups/monday.tar\nwirewatch verify /backups/monday.tar'),
    points(
      'It appears under its name when it is whole, checked and on disk. One that was cut off leaves a folder .wirewatch-backup-... beside it, which the next one removes.',
      'While it is made, twice the room of the databases is needed, afterwards once. On the disk of the data folder half a GiB is left free in any case: ingest must not wait for want of room.',
      'A file that is there is replaced with --force only. Only its owner can read it.',
      'The drop folder with its archive, the photos and the configuration are not in it. They are plain files: let your backup program copy them. With the archive, what came after the backup can be read again.',
      'usage.db, which counts the rows read today, is not in it either. A restore leaves the one that is there.',
    ),
    'The secret in it',
    paragraph(`
      Cursors, access tokens and photo addresses are signed with the secret. It is in the backup because without it
      every cursor would be refused after a restore, and every client would have to start again. Whoever has a backup
      can forge cursors, access tokens and photo addresses, and sees all detections; keys cannot be had from it, only
      their SHA-256. So guard a backup as you guard the data folder. The secret cannot be changed without
      invalidating all that was signed with it.`),
    'On a schedule',
    fenced(
      'sh',
      '# in wirewatch.toml\n[backup]\nfolder = "/mnt/backups/wirewatch"\nevery_hours = 24\nkeep = 7',
    ),
    points(
      'Files are named wirewatch-TIME.tar by the time of their beginning (UTC). The newest keep are kept; no file with another name is ever deleted.',
      'The appliance runs "wirewatch backup" for it, at the lowest priority, then "wirewatch verify": it is unpacked beside itself and looked through. Until then it is called NAME.tar.untested, and counts for nothing. One in which something is found becomes NAME.tar.damaged, counts for nothing, and deletes no older one; the alert "backup not restorable" says so.',
      'One is due when the newest file is older than every_hours, at the first start at once. After a failure it is tried again within an hour, and the alert "backup overdue" has the cause.',
      'The folder is made where its parent is there, so that a disk that is not mounted is not taken for one.',
      'Without every_hours none is made: each takes as much room as the databases, and only you know another disk for them.',
    ),
    'Restore',
    fenced('sh', 'wirewatch restore /backups/monday.tar --replace'),
    points(
      'Stop the appliance first: while one runs, the command is refused. So is a backup in which anything is found, and one of a newer program; then nothing was changed.',
      'Without --replace it works on a data folder that holds no installation. With it, the databases, the journal and the secret that are there are moved into replaced-TIME/ in the data folder. Delete that when all is well. The drop folder, photos and wirewatch.toml stay.',
      'Keep the journal that is there, whatever happened to the databases. The command takes it over where it goes on from that of the backup: the next start then reads the files that came since again from archive/, in the same order, and versions come out as clients have seen them. Keys that were revoked since stay revoked.',
      'Where the journal is lost, or a file is missing in the archive, or accounts or subscriptions were changed since, that cannot be proven. Versions are then raised once by 1,000: a client keeps the higher version, so it keeps nothing that is older. The command says which it will be, and why.',
      'In either case no position is given out twice: cursors go on, and skip nothing. Accounts, subscriptions and keys that were made after the backup have to be made again; revoked keys cannot come back.',
      'A crash leaves the old state or the new one. After it, run the same command again or start the appliance: either completes what was begun, and nothing else opens the folder before.',
    ),
    'To another machine',
    points(
      'Stop the appliance, and run "wirewatch backup FILE".',
      'On the new machine make the data folder, and put into it: the file journal of the old one, the drop folder (with archive/), photos/ and wirewatch.toml.',
      'Run "wirewatch restore FILE --data DIR", then "wirewatch verify --archive --data DIR", then start the appliance there.',
      'With the journal, nothing is raised or read again. Do not start the old one again: both would give out the same positions.',
    ),
    'What verify looks at',
    paragraph(`
      "wirewatch verify" looks through the data folder, also beside the running appliance, and only reads;
      "wirewatch verify FILE" through a backup, which it unpacks beside it. Exit code 0: nothing was found. 1: each
      finding says what it means and what to do.`),
    Object.entries(CHECKS)
      .map(([name, { looks_at, means, what_to_do }]) =>
        [
          name,
          wrapped(`Looks at: ${looks_at}.`, '    '),
          wrapped(`Otherwise: ${means}`, '    '),
          wrapped(what_to_do, '    '),
        ].join('\n'),
      )
      .join('\n'),
  );
}
