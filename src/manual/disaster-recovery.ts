/** Manual, topic `disaster-recovery`: when the machine dies, and how a second one is kept ready. Tests run its commands. */
import { fenced, page, paragraph, points } from './text.ts';

export function disasterRecoveryText(): string {
  return page(
    'DISASTER RECOVERY',
    paragraph(`
      When the machine dies, another one takes its place. This page says what it needs, in which order, and what clients
      notice. Paths are those of "wirewatch setup"; the machines are called first and second, and only one of them ever
      runs the service.`),
    ...WHAT,
    ...PREPARE,
    ...TAKE_OVER,
    ...NOTICED,
    ...NEVER_BOTH,
    ...NOTHING_LOST,
  );
}

const WHAT = [
  'What the second machine needs',
  points(
    '/var/backups/wirewatch: the backup. From it come detections, accounts, subscriptions, keys, and the secret that signs cursors.',
    '/var/lib/wirewatch/drop: the drop folder, with its archive and the files that wait, failed or are held.',
    '/var/lib/wirewatch/photos: the photos, if you serve any.',
    '/etc/wirewatch: the configuration, and whatever it names elsewhere: certificates, files with keys.',
    'Nothing else. The databases are made from the backup. usage.db is not copied: rows read today count from zero.',
  ),
];

const PREPARE = [
  'Prepare the first machine',
  paragraph('Have it bring a backup folder outside the data folder up to date, best on another disk:'),
  fenced(
    'toml',
    `
# in /etc/wirewatch/wirewatch.toml
[backup]
folder = "/var/backups/wirewatch"
every_minutes = 5`,
  ),
  fenced(
    'sh',
    `
# on the first machine, as root, once
mkdir -p /var/backups/wirewatch
chmod 700 /var/backups/wirewatch
chown wirewatch: /var/backups/wirewatch
wirewatch setup
systemctl daemon-reload
systemctl restart wirewatch`,
  ),
  'Prepare the second machine',
  paragraph('Install the same version of the program. Do not start the service:'),
  fenced(
    'sh',
    `
# on the second machine, as root, once
rsync -a first:/etc/wirewatch/ /etc/wirewatch/
wirewatch setup
systemd-sysusers /etc/sysusers.d/wirewatch.conf
mkdir -p /var/lib/wirewatch/drop /var/lib/wirewatch/photos /var/backups/wirewatch
chmod 700 /var/lib/wirewatch /var/backups/wirewatch
systemctl daemon-reload
systemctl disable wirewatch`,
  ),
  paragraph('Then copy every five minutes, by cron or a systemd timer, in this order:'),
  fenced(
    'sh',
    `
# on the second machine, as root, every five minutes
if systemctl is-enabled --quiet wirewatch; then exit; fi
rsync -a first:/var/backups/wirewatch/ /var/backups/wirewatch/
rsync -a --delete first:/var/lib/wirewatch/drop/ /var/lib/wirewatch/drop/
rsync -a --delete first:/var/lib/wirewatch/photos/ /var/lib/wirewatch/photos/
rsync -a first:/etc/wirewatch/ /etc/wirewatch/`,
  ),
  points(
    'rsync runs over SSH: let root of the second machine log in on the first with a key of its own, which may only read (rrsync -ro). Leave out the photos if there are none.',
    'Its first line keeps it from overwriting a machine that has taken over.',
    'The backup comes first: a file that is read after that is in the copied archive, and is read again.',
    'The backup is copied without --delete: if its disk were not mounted on the first machine, the copy would be emptied. Branches older than [backup] keep_days are therefore yours to delete on the second machine.',
    'The backup may be copied at any moment, also while it is written.',
    'With a share instead of rsync: mount it at /var/backups/wirewatch on both, and let [ingest] drop and [photos] folder name folders on it. Then there is nothing to copy but /etc/wirewatch. The data folder itself must be on a local disk.',
  ),
  paragraph(
    'Once a month, try it on the second machine. It changes nothing and says how long a restore takes:',
  ),
  fenced(
    'sh',
    `
# on the second machine, as root, once a month
export WIREWATCH_DATA=/var/lib/wirewatch WIREWATCH_CONFIG=/etc/wirewatch/wirewatch.toml
chown -R wirewatch: /var/lib/wirewatch /var/backups/wirewatch
wirewatch verify /var/backups/wirewatch
wirewatch restore --rehearse /var/backups/wirewatch`,
  ),
];

const TAKE_OVER = [
  'When the first machine dies',
  paragraph(`
    First make sure that it is off and stays off: cut its power or its network. Then, on the second machine, or on a new
    one that was prepared as above and has the copies:`),
  fenced(
    'sh',
    `
# on the second machine, as root, when the first is off
export WIREWATCH_DATA=/var/lib/wirewatch WIREWATCH_CONFIG=/etc/wirewatch/wirewatch.toml
wirewatch setup
systemctl daemon-reload
chown -R wirewatch: /var/lib/wirewatch /var/backups/wirewatch
wirewatch restore /var/backups/wirewatch --replace
systemctl enable --now wirewatch
wirewatch check`,
  ),
  points(
    'Then give it the address of the first (DNS, or the proxy), and let the writer of the exports drop its files here.',
    'Ask the writer to drop again every file since the last copy. A file that is known changes nothing.',
    'If the restore is interrupted, run the same command again.',
    '"wirewatch check" reports "ingest stalled" if the last export is older than 45 minutes. That ends with the next file.',
  ),
];

const NOTICED = [
  'What clients notice',
  points(
    'Requests fail until the address leads to the second machine.',
    'Keys, access tokens, cursors and photo addresses stay valid. Followers go on with the cursor that they have.',
    'They skip nothing and keep nothing that is older. What the first machine gave out after the last copy is not known here, so versions are raised by 1,000, once, and positions go on a year ahead. Some detections arrive again.',
    'What came in a file that was lost with the machine is missing until that file is dropped again.',
    'A key that was created after the last copy does not exist; one that was revoked after it works again. Repeat what you did in these minutes: "wirewatch log --access" shows the last entry that is known.',
  ),
];

const NEVER_BOTH = [
  'How not to run both',
  points(
    'Both would give out the same positions for different changes, and a client that reads from both would skip some. So the service is enabled on one machine only.',
    'The first machine starts the service as soon as it has power. Let it boot without a network, and run "systemctl disable --now wirewatch" there before anything else.',
    'Never start it with its old data folder again. Files in its drop folder that the second machine lacks can be dropped there.',
    'Then move its data folder away (mv /var/lib/wirewatch /var/lib/wirewatch-old) and prepare it as the second machine: the two have changed places.',
  ),
];

const NOTHING_LOST = [
  'If its disk can still be read',
  paragraph(
    'Take the data folder itself in place of the backup. Nothing is lost, and clients notice nothing:',
  ),
  fenced(
    'sh',
    `
# on the second machine, as root, with the disk of the first mounted on /mnt
rsync -a --delete /mnt/var/lib/wirewatch/ /var/lib/wirewatch/
chown -R wirewatch: /var/lib/wirewatch
systemctl enable --now wirewatch`,
  ),
  paragraph(
    'If a part of it is damaged, restore the backup over it: what the log has beyond the backup is kept.',
  ),
  'A planned move',
  fenced(
    'sh',
    `
# on the first machine, as root
systemctl disable --now wirewatch`,
  ),
  fenced(
    'sh',
    `
# on the second machine, as root, when the service has ended on the first
rsync -a --delete first:/var/lib/wirewatch/ /var/lib/wirewatch/
chown -R wirewatch: /var/lib/wirewatch
systemctl enable --now wirewatch`,
  ),
  paragraph('Nothing is lost, and clients notice only that the address was away.'),
];
