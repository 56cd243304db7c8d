/** Manual, topic `backup`: backing up, restoring, moving, and what to do when the machine dies. */
import { fenced, page, paragraph, points } from './text.ts';

export function backupText(): string {
  return page(
    'BACKUP',
    paragraph(`
      A backup holds the logs of the data folder, from which both databases are made, and the secret. It is about a tenth
      of the size of the databases. It can be made while the appliance runs.`),
    fenced(
      'sh',
      'wirewatch backup /mnt/backups/wirewatch\nwirewatch verify /mnt/backups/wirewatch\nwirewatch backup monday.tar',
    ),
    points(
      'A folder is brought up to date: only what is new is written, a few hundred bytes where nothing is. What is written is checked and on the disk before it counts. Where a run is cut off, the folder still holds its last good state.',
      'A name that ends with .tar is one file to carry. It is written anew each time, and replaced with --force only.',
      'The folder has a branch (wirewatch-TIME/) for each history. A branch is only continued by an installation whose log has its end. Another one, as after the restore of something older, begins a new branch beside it. Branches that are not continued, and segments that a removal has rewritten, are deleted after [backup] keep_days.',
      'The drop folder with its archive, the photos and the configuration are not in it. They are ordinary files: copy them with rsync. usage.db, which counts the rows read today, is not in it either.',
      'After "subscription remove" the rows are gone from detections.db, and no client sees them. The log keeps them, and so do copies of the log and files in archive/.',
    ),
    'The secret in it',
    paragraph(`
      Cursors, access tokens and photo addresses are made with the secret. It is in the backup because without it every
      cursor would be refused after a restore. Whoever has a backup can forge cursors, access tokens and photo addresses,
      and sees all detections; keys cannot be recovered from it, only their SHA-256 is there. So protect a backup as you
      protect the data folder.`),
    'On a schedule',
    fenced(
      'sh',
      '# in wirewatch.toml\n[backup]\nfolder = "/mnt/backups/wirewatch"\nevery_minutes = 5\nkeep_days = 30',
    ),
    points(
      'The appliance runs "wirewatch backup" at the lowest priority. Once a day it runs "wirewatch verify" on the folder; if a part of it is damaged, the alert "backup not restorable" says so.',
      'If a run fails, it is tried again after every_minutes, and the alert "backup overdue" has the cause.',
      'The folder is created if its parent exists, so an unmounted disk is not mistaken for one.',
      'Try now and then whether a restore works: "wirewatch restore --rehearse /mnt/backups/wirewatch" makes the databases in a temporary folder within the data folder, compares them with the installation, says how long it took, and changes nothing.',
    ),
    'Restore',
    fenced('sh', 'wirewatch restore /mnt/backups/wirewatch --replace'),
    points(
      'Stop the appliance first. The backup may be a folder (its newest branch is taken, or the one that you name), a file, or a data folder. It is checked, and the databases are made from it, before anything is moved. If it is damaged, nothing is changed.',
      'Without --replace it works on a data folder that holds no installation. With it, what is there is moved to replaced-TIME/ in the data folder. Delete that when all is well. The drop folder, photos and wirewatch.toml stay.',
      'If the data folder still has its own log, and this continues the backup, nothing is lost and clients notice nothing: damaged parts of the log are filled from the backup, and both databases are made anew. So do not delete a data folder in which something is damaged; restore over it.',
      'Otherwise what came after the end of the backup is lost, and clients may have seen it. Then, once, versions are raised by 1,000 and positions go on a year ahead: cursors stay valid, clients skip nothing, and never take newer content for older. Files in archive/ that came since are read again at the next start. Keys stay revoked as far as the access log goes.',
      '--until TIME restores the state of that time. Detections that came later are given up, and the files are listed, not read again. Accounts, subscriptions and keys stay as they are: what was revoked stays revoked.',
      'A crash leaves the old state or the new one. After it, run the same command again or start the appliance: either completes the restore, and nothing else opens the folder before.',
    ),
    'When the machine dies',
    paragraph(`
      With paths as "wirewatch setup" makes them, the backup folder on another disk or machine, and the drop folder and
      photos copied there as well:`),
    fenced(
      'sh',
      [
        '# on the new machine, as root',
        'wirewatch setup',
        'systemctl stop wirewatch',
        'rsync -a backuphost:/backups/drop/ /var/lib/wirewatch/drop/',
        'rsync -a backuphost:/backups/photos/ /var/lib/wirewatch/photos/',
        'chown -R wirewatch: /var/lib/wirewatch',
        'wirewatch restore /mnt/backups/wirewatch --replace --data /var/lib/wirewatch',
        'systemctl start wirewatch',
        'wirewatch check --data /var/lib/wirewatch',
      ].join('\n'),
    ),
    points(
      'Clients notice: requests fail until the new machine has the address. Then their cursors work, and detections that change have versions above 1,000. They may receive some again.',
      'If the disk of the old machine can still be read, copy its data folder instead (rsync -a, the appliance stopped on both): then nothing is lost, and nothing is raised.',
      'Never start the old machine again with its data folder: both would give out the same positions. If its log is of use, restore from it.',
    ),
    'A second machine, ready',
    points(
      'Let it copy the backup folder, the archive and the photos every few minutes: rsync -a --delete, or a share that both mount. Install the same version there, and leave its service disabled (systemctl disable wirewatch).',
      'To switch, make sure that the first machine is off, then restore and start as above. "wirewatch restore --rehearse" on the second machine says beforehand how long that takes.',
      'A planned move loses nothing: stop the appliance, copy the whole data folder with rsync -a, and start it there.',
    ),
    'An older data folder that is put back',
    paragraph(`
      A whole data folder that is copied back (cp -a, a snapshot of the disk) looks sound, and lacks its end. The first
      client that comes with a newer cursor proves it. Then versions are raised and positions go on a year ahead, as after
      a restore; what was read since is announced again, archived files without a record are read, and the alert "end of
      log lost" is opened.`),
  );
}
