/** Manual, topic `backup`: backing up, rehearsing, restoring. */
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
    ),
    'Removed customers',
    points(
      'After "subscription remove" and "account remove" the rows are in neither detections.db nor the log. The next backup into a folder takes over the segments that were rewritten. The segments that these replace stay in the branch (replaced-TIME/) and are deleted by the first backup after [backup] keep_days. So the folder holds the rows that long, and no longer, if backups go on.',
      'Branches that are not continued keep theirs until they are deleted, after the same time. Files (.tar), copies of the folder and copies of the data folder keep the rows until you delete them. To be rid of them at once, delete replaced-TIME/ and the other branches by hand.',
      'A backup of before the removal brings the rows back only where the restored log ends before the removal: on a machine that has no newer log, or with --until. If the log of the data folder goes on from that backup, the removal is in it, and holds: the rows are taken out again when the appliance starts. After --until, accounts and subscriptions are those of today: to delete rows that came back, add the subscription and remove it.',
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
    ),
    'Rehearse',
    fenced('sh', 'wirewatch restore --rehearse /mnt/backups/wirewatch'),
    points(
      'Rehearse a restore once a month, and after every change of the disks. It makes the databases in a temporary folder within the data folder, compares every row of the change stream with the installation, and says from when the backup is and how long it took. The installation is not changed, and may run.',
      'If nothing was wrong, a note of the time is written into the branch of the backup folder. "wirewatch check", the status page, the metrics and the alert "backup overdue" show it. "wirewatch check" warns if there is none, or if it is older than 30 days.',
      'It can run on another machine, too, as long as that one sees the same folder and may write to it. A rehearsal of a tar file is not noted, and that of a copy is noted in the copy.',
      'If it is killed, its temporary folder .rehearsal/ is left. The next rehearsal deletes it.',
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
      'When the machine has died: "wirewatch manual disaster-recovery".',
    ),
    'An older data folder that is put back',
    paragraph(`
      A whole data folder that is copied back (cp -a, a snapshot of the disk) looks sound, and lacks its end. The first
      client that comes with a newer cursor proves it. Then versions are raised and positions go on a year ahead, as after
      a restore; what was read since is announced again, archived files without a record are read, and the alert "end of
      log lost" is opened.`),
  );
}
