/** Manual, topic `operations`: what can become of a file, and what to do about it. */
import { page, paragraph, points, wrapped } from './text.ts';

/** Lines of the log that want somebody, by their `msg`, and what to do. */
export const LOG_LINES: readonly (readonly [msg: string, what: string])[] = [
  [
    'cannot run the alert command',
    'The program in [alerts] command does not exist, or the user of the appliance has no permission to run it.',
  ],
  [
    'the alert command failed',
    'The line has its exit code or the signal that ended it; SIGKILL means that it ran for more than 30 seconds.',
  ],
  [
    'alert command skipped: too many alerts are waiting for it',
    'The command is too slow. Run "wirewatch alert list" to see the alerts that it missed.',
  ],
  [
    'file failed',
    'Nothing of the file was applied. See "A file failed" above. The line has its name and the reason.',
  ],
  [
    'file refused',
    'The name, or the window, is not one of an export, or the export is switched off. See refused/.',
  ],
  [
    'left alone in the drop folder: not a regular file with a readable name',
    'A folder, link or pipe, or a name that is not UTF-8. Move it away.',
  ],
  [
    'cannot delete an old file from the archive: check its rights; it is tried again in an hour',
    'The line names the file and has the cause. Ingest goes on, and the other old files are deleted. Give the user of the appliance the right to delete it, or move away what is in its place.',
  ],
  [
    'cannot take files without a record out of the archive: check its rights; it is tried again',
    'After a lost end, archived files without a record are read again. The line names the first that could not be moved. Give the user of the appliance the right to move it.',
  ],
  [
    'cannot take the rows of removed subscriptions out of the log: it is tried again in an hour',
    'The rows are gone from detections.db; no client sees them. The line has the cause. If the disk has no room, make some: one segment of the log is written anew at a time. If the log is damaged, see "wirewatch verify", and restore a backup over the data folder. The next start tries again, too.',
  ],
  [
    'cannot remove notes of readings that were given up',
    'Files skipped-N.ndjson in .taken/ that nobody needs. The next start tries again; or delete them.',
  ],
  [
    'cannot deal with a dropped file: check its rights; it is tried again',
    'The user of the appliance must be able to read the file and to move it. It is tried again every ten seconds.',
  ],
  [
    'cannot move a file that was dealt with: check the rights of the folder',
    'Its rows are in; only the file cannot go to its folder yet. Give the user of the appliance the right to write there.',
  ],
  [
    'cannot use the drop folder: check that it is there and may be read and written',
    'Nothing is read until it is. "the drop folder can be read again" says that it is over.',
  ],
  [
    'no events from the drop folder: it is rescanned instead',
    'The file system announces no changes: files are found every [ingest] rescan_seconds.',
  ],
  [
    'cannot move a failed file whose window was read since to the archive',
    'It stays in failed/, and nobody needs it: delete it with its note, or give the user of the appliance the right to move it.',
  ],
  [
    'the disk is full: ingest waits until there is room',
    'Reads go on. Make room; ingest goes on by itself within ten seconds, and nothing is lost.',
  ],
  [
    'ingest has stopped after a fault; reads go on. Mend the cause and start again',
    'The disk or the database failed. What was committed stays. Find the cause in the line, mend it, and restart the appliance.',
  ],
  [
    'ingest waits until access.db can be read again; it goes on by itself',
    'Keys cannot be checked either. Put access.db back from a copy, or mend its rights; no restart is needed.',
  ],
  [
    'cannot write the last notes',
    'At a stop, notes could not be written. Nothing is lost; the next start makes up for them. Check the disk.',
  ],
  [
    'cannot go on with a backfill: check its rights; it is tried again',
    'A backfill is half applied, and its file in .taken/ cannot be read. Give the user of the appliance the right to read it, or put it back; it is tried again every ten seconds.',
  ],
  [
    'detections.db is made from the log: it is served when that is done',
    'detections.db was missing, damaged, of another version, or older than its log; the line has the reason. Until it is done, endpoints that read detections answer 500 with Retry-After. Nothing is lost.',
  ],
  [
    'detections.db is damaged',
    'A check against the log found a difference; the line says what. Restart the appliance: it makes the database anew, and nothing is lost. Check the disk.',
  ],
  ['the log is damaged', 'A check found a part of the log missing or changed. See the alert "log damaged".'],
  [
    'detections.db was not compared with the log',
    'The line has the reason: the log is damaged, or the disk has no room for the comparison (a fifth of the size of detections.db, and 512 MiB besides). Then the log alone was checked.',
  ],
  [
    'comparing detections.db with the log failed: it is tried again within an hour',
    'The line has the cause.',
  ],
  [
    'access.db was made anew from its log',
    'access.db was missing, damaged, of another version, or not what its log says; the line has the reason. Nothing is lost. If the disk was the cause, replace it.',
  ],
  [
    'access.db was older than its log, and has been brought to its end',
    'An older access.db was restored, or a command was killed between its two writes. Nothing is lost, and revoked keys stay revoked.',
  ],
  [
    'the access log is damaged; access.db has all of it',
    'The appliance runs, but access.db could not be made anew from access-log/. Check the disk, and restore the damaged segment from a backup.',
  ],
  [
    'the appliance cannot start',
    'Only where [log] file is set; on stderr the reason stands by itself. It says what to do.',
  ],
  [
    'a fault ended the appliance',
    'It has to be started again (a service manager does). The line has the cause; keep it for a report.',
  ],
  [
    'http server',
    'The listening socket failed, for example because no file descriptors were left. The line has the cause.',
  ],
  [
    'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
    'Said at every start without [server] base_url; harmless where all clients are on this machine.',
  ],
  [
    'keys cross the network in the clear: there is neither a certificate nor a trusted proxy',
    'Said at every start where [server] host is no address of this machine alone and the appliance speaks plain HTTP. Set [server] tls_certificate and tls_key; or put a proxy with TLS in front, on this machine with [server] host 127.0.0.1, on another with its address in [server] trusted_proxies.',
  ],
  [
    'new connections were closed: too many connections are open',
    'At most one line per minute. connections is the number of connections closed since the previous line, and address is that of the last one. limit is the setting: [server] max_connections or max_connections_per_address. Raise it, or find out what keeps connections open at that address.',
  ],
  [
    'ignored X-Forwarded-For from an address that is not a trusted proxy',
    'Logged once. If the address is your proxy, add it to [server] trusted_proxies: until then all its clients count as one address. Otherwise a client made up the header, and nothing needs to be done.',
  ],
  [
    'the new certificate cannot be used: the previous one stays in use',
    'The files in [server] tls_certificate and tls_key changed, but they do not match or cannot be read; the line says which and why. A valid pair is loaded automatically.',
  ],
  [
    'a key still works, though the configuration has another one in its place',
    'An entry of [[keys]], or its secret file, holds another key than it did. The key from before is not revoked by that. Once its client has the new one, run the command in the line: wirewatch key revoke ID.',
  ],
  [
    'what is there differs from the configuration, and stays as it is',
    'An account, subscription or key of the configuration was changed, suspended or revoked by a command since. Bring the file up to date; see "wirewatch manual preseeding".',
  ],
  [
    'every user of this machine can read these secret files',
    'Take the right to read them from others (chmod o-r), and think of making new keys.',
  ],
  [
    'the administration can be reached from other machines: whoever reaches it can read it',
    'Said at every start where [admin] host is no address of this machine alone. See that a firewall or a proxy guards its port.',
  ],
  [
    'a page of the administration failed',
    'The line has the cause; keep it for a report. The API is not concerned.',
  ],
  [
    'unavailable',
    'Keys cannot be checked, clients get 503. The line has the cause: access.db cannot be read.',
  ],
  [
    'lines of the log are missing: it could not be written',
    'The disk of the log was full, or what reads the log was too slow. The line says how many are missing. Nothing else was affected.',
  ],
  [
    'cannot open the log anew: lines go on into the file that was open',
    'On SIGHUP the file [log] file could not be opened; the line has the cause. Mend the folder and send SIGHUP again.',
  ],
  [
    'the service manager cannot be told: is systemd-notify installed?',
    'NOTIFY_SOCKET is set (Type=notify), but the program systemd-notify is missing or failed. The appliance runs; systemd would wait for its word in vain. Install it, or use Type=exec.',
  ],
  [
    'a photo changed or could not be read while it was being sent: the response was cut off',
    'It was written to while it was read, or the disk failed; the line has the cause. Write photos under another name, then rename them.',
  ],
  [
    'the disk is full: what the configuration names was not created. Make room and start again',
    'The appliance started on a full disk: it answers those who have their keys, and ingest waits for room. Accounts, subscriptions and keys that are new in the configuration are created by the next start.',
  ],
  [
    'cannot write how many rows were read: a restart would forget it',
    'usage.db cannot be written; the line has the cause. Rows are still counted, and written as soon as possible: "used rows are written again". Where usage.db itself is damaged, restart the appliance.',
  ],
  [
    'usage.db cannot be used and begins anew: rows counted today start from zero',
    'The line has the reason. Clients can read their daily rows once more today; nothing else is lost. The file is kept as usage.db.damaged until the next time: delete it. If the disk was full, the file stays in place.',
  ],
  [
    'alert opened',
    'Something is not as it should be: the line says what, whether it needs someone now (page_worthy), and what to do. See "wirewatch manual alerts".',
  ],
  [
    'the scheduled backup failed: it is tried again',
    'The line has the cause. See the alert "backup overdue".',
  ],
  [
    'the backup was read through: it is not good',
    'The line says what is damaged. See the alert "backup not restorable".',
  ],
  [
    'the backup folder is of another history: a new branch begins beside it',
    'The log does not have the end of the backup that is there: something older was restored, or another machine writes to the same folder. If you did not expect that, find out which before [backup] keep_days are over: the old branch is deleted then.',
  ],
  [
    'the end of the log is lost: versions are raised, once, and positions go on a year ahead',
    'A client came with a cursor for a position that the log does not have: an older data folder was put back. See the alert "end of log lost".',
  ],
  [
    'archived files without a record are read again',
    'The end of the log was lost, and these files came after it. Nothing has to be done.',
  ],
  [
    'a restore that had been cut off was completed',
    'A crash had ended "wirewatch restore" after the new state was complete. What was there before lies in replaced-TIME/ in the data folder.',
  ],
  ['fault', 'A request failed with 500. The line has its request id and the cause.'],
  [
    'fault repeated',
    'The "fault" or "unavailable" logged before occurred again, with the same cause: at most one line per minute, with the number of times since the first line (count) and since the previous one (more). "fault no longer occurs" means that a minute passed without it.',
  ],
];

export function operationsText(): string {
  return page(
    'OPERATIONS',
    paragraph(`
      "wirewatch status" shows how things stand on one screen: whether the appliance runs, the newest window and the gaps
      of each export, what waits, open alerts, the newest files that were not read, keys and their last use, the room on
      the disks, and the last backup. --watch keeps it current.`),
    paragraph(`
      "wirewatch ingest status" says whether the appliance runs, what waits, up to when each export was read
      and how many windows before that were not, and what became of the last files. "wirewatch ingest explain NAME" says what became of one file, and
      "wirewatch window list" what became of each window.`),
    'Is everything in order?',
    points(
      '"wirewatch check" looks at the configuration, the rights and disks of the data folder and of the drop folder, the clock, both databases (every page), their logs and the secret, subscriptions and keys, those of the configuration too, open alerts, the scheduled backup, the address, the certificate, and how many files may be open. Each is ok, warn or bad, with what to do; exit code 1 when one is bad. Run it as the user of the appliance, with the same settings.',
      'It changes nothing. What it tries in a folder (making, renaming and syncing a file, being told of a new one) has a name that begins with a dot, and is gone afterwards. A large database takes as long as reading it.',
      '"wirewatch healthcheck" asks the running appliance, GET /v1/health, at the address that the settings name: exit code 0 when it is healthy, 1 with a line that says why when it is not. It takes --url, and --timeout in seconds. An export that stalls makes it unhealthy too: let it call somebody, or take the appliance out of a balancer, but not restart it.',
    ),
    'What becomes of a file',
    points(
      'applied: its rows are in, its window is done, it lies in archive/.',
      'repeated: the same content was applied before for the same window or label; it changed nothing and lies in archive/.',
      'failed: a row or the file breaks the format; it lies in failed/ with NAME.reason.json. Its window is failed, unless it was done before: then it stays done.',
      'held: it came for a window that is failed or abandoned; it lies in held/ and waits for your word.',
      'refused: not the name of an export, a window more than a day ahead, or an export that is switched off; it lies in refused/ with its reason.',
      'applying: a backfill that is being applied.',
    ),
    paragraph(`
      A window is done, failed, missing or abandoned, or not known yet. "wirewatch manual alerts" says how one
      comes to be missing, and "wirewatch alert list" what else needs attention.`),
    'A file failed',
    points(
      'Read NAME.reason.json beside it: line, column, value, what was expected. Have it mended, and check the new file with "wirewatch ingest validate FILE".',
      'Drop the fixed file under the same name. It is held until you reset the window, unless [ingest] failed_windows = "read" says beforehand that it is read at once.',
      'Run "wirewatch window reset newswire 20261121T1010Z": the newest held file of the window is read, or, where none is held, the failed one again (after a change of settings, say). It prints what became of it.',
      '"wirewatch window accept newswire 20261121T1010Z" does the same for a window that was abandoned, 30 days after it was found missing.',
      '"wirewatch window reset newswire --all" does so for every failed window of an export for which a file is held.',
      'Of several held files, the newest is read; the others stay where they are. Once a window was read, the file that had failed for it leaves failed/ for archive/DAY/NAME.failed.',
      'A backfill has no window: drop the mended file, under the same name or another.',
    ),
    'A file was refused',
    points(
      'Drop it again under a right name. The files in refused/ are looked at by nobody else: delete them when you like.',
      'A window "more than a day ahead" mostly means that a clock is wrong, or that local time was written in place of UTC.',
    ),
    'Rows are missing',
    points(
      'unknown_rows in the record of a file counts rows of subscriptions or content types that are not there: see "wirewatch ingest explain NAME". Add the subscription, then run "wirewatch ingest replay".',
      '"wirewatch ingest replay" reads archived files again, in the order in which they were first applied. It brings in such rows (and closes the alert about them), applies a licence that was changed (wirewatch account set ID --print-metadata on), and changes nothing that is up to date. --from and --to name the time at which files were first applied.',
      'A file that is no longer in archive/ cannot be replayed; the command names it and ends with exit code 1.',
    ),
    'Removing a customer',
    points(
      '"wirewatch subscription remove 7001" removes a subscription with its detections, "wirewatch account remove acme" an account with its subscriptions, their detections and its keys. It cannot be undone: the command asks for the id on a terminal, and wants --yes elsewhere. To stop an account for a while, suspend it.',
      'Clients are cut off with the next request. The rows are deleted by the running appliance, in small transactions, then taken out of the log, segment by segment; or by the command itself where none runs. The command waits, and shows how far it is. Ended half-way, it goes on by itself with the next start; repeated, "wirewatch subscription remove" waits for it. Until it is done the number cannot be added again.',
      'Keys that have nothing left to read stay, and are named: give them something, or revoke them. Keys of a removed account are ended for good.',
      'Cursors of other subscriptions go on. A subscription that is added again under its number begins anew, with version 1 of everything: its clients must drop what they have kept. "wirewatch ingest replay" brings back what lies in archive/.',
      'The rows are then in neither detections.db nor log/. What was freed in detections.db is used for new rows, and overwritten then; the file does not shrink.',
      'Files in archive/, held/ and failed/ still hold the rows; delete those that must not stay. So do backups: "wirewatch manual backup" says for how long. So do logs and data that were moved aside in the data folder (log-until-TIME/, replaced-TIME/): delete these.',
      'What stays tells that there was something, not what: counts, positions, times, names of files, the number of the subscription; of files that failed also their first errors, with the values that were wrong. The access log keeps what the account, subscription and keys were called.',
      'Exports that go on carrying the subscription raise the alert "rows skipped". A configuration that still names it has it added again at the next start, empty; keys of a removed account come back revoked.',
    ),
    'Photos',
    points(
      'Where an export gives no source_image_url, a detection carries an address of the appliance: BASE_URL/photos/ID?signature=..., ID being its source_internal_id. It works for anyone who holds it, without a key, and has no expiry.',
      'Put the photo into [photos] folder as ID.jpg, .jpeg, .png, .webp, .gif or .tif; the first of these that is there is served. Only regular files count: links, pipes and empty files do not.',
      'Write it under another name (on the same file system), then rename it: whoever asks in between is told to keep what he gets for a year. To replace a photo, rename the new one over it; who has the old one keeps it.',
      '404 has one text for a wrong signature and for a photo that is not there. 500: the file or the folder cannot be read; see the line "fault" of the log.',
    ),
    'Pause',
    points(
      '"wirewatch ingest pause" leaves dropped files where they are, after the one that is being read, until "wirewatch ingest resume". It is kept over restarts. Reads go on.',
    ),
    'Start, stop, crash',
    points(
      'SIGTERM or Ctrl-C: requests get ten seconds to finish, a file that is half read is rolled back and read again at the next start, a backfill goes on where it was. A second signal ends at once, which is safe too.',
      'After the clock has jumped, nothing is deleted from archive/ and no window is given up until it has gone evenly for an hour. While it is behind, files of windows that it does not know of yet wait.',
      'A clock that was ahead and is set right again leaves one trace: delivery times never go backwards. Until the clock has passed the latest one, new changes get that time too, and a request with since also returns what was delivered during the jump. Cursors are not affected.',
      'After a crash or a power cut the next start finishes what was begun. There is nothing to repair by hand.',
      'A second appliance on the same data folder is refused with exit code 1. The lock ends with its process: files named lock… that are left over are no obstacle. A command that does the work itself, since no appliance runs, gives way to one that starts, which goes on with it.',
      'Replay and reset are done by the running appliance, or by the command itself where none runs.',
    ),
    'An older file was put back',
    points(
      'The log (log/) has everything that was done to detections. An older, missing or damaged detections.db is brought to its end, or made anew from it, at the next start: every position, version and text is the same, whatever became of settings, licences and the archive since.',
      'The access log (access-log/) has every change of accounts, subscriptions and keys. The next start or command brings an older access.db up to date from it, before any key is checked: revoked keys stay revoked. If access.db is missing or damaged, it is made anew. If a running appliance uses it, restart the appliance.',
      'Never delete log/ or access-log/. A start refuses a database of which the log lacks the end, and changes nothing.',
      'A whole data folder that was put back lacks its end, and nobody can see that, until a client comes with a newer cursor. See "wirewatch manual backup".',
    ),
    'Damage',
    points(
      'detections.db is made from log/. Once a day ([verify] every_hours) the appliance reads the log with every checksum and compares the database with it, row by row and column by column. It works a tenth of the time at most, and holds nothing up. "wirewatch verify" does the same at once, and looks at access.db, its log and the secret as well.',
      'While it compares, it needs room on the disk for about a fifth of the size of detections.db. It never takes the last 512 MiB; without that room only the log is checked.',
      'If the database is damaged, ingest stops and detections are answered with 500. Restart the appliance: it makes the database from the log, and cursors, versions and texts are as before. "wirewatch rebuild" does that while the appliance is stopped.',
      'If the log is damaged, everything goes on, but the database could not be made from it. Stop the appliance and restore the backup over it ("wirewatch restore BACKUP --replace"): damaged parts are filled from the backup, and nothing is lost. Without a backup, copy the data folder and run "wirewatch rebuild --log": it verifies both databases, begins both logs again with what they hold, and compares the new log with the database before using it. The old logs are kept in log-until-TIME and access-log-until-TIME. It also shortens a log that has grown too long.',
      'If both are damaged, a start refuses and changes nothing. Restore a backup: what is still good in the log of the data folder is used.',
      'Damage mostly means a failing disk or memory. Check both before you go on.',
    ),
    'The log',
    paragraph(`
      A JSON object a line on stderr: level, time, msg and what belongs to it. Each file dealt with and each
      request is a line of level info. Where stderr is a terminal, the same in lines for people.`),
    points(
      'With [log] file the lines go into that file (made with mode 0640), and nothing to stderr. To rotate it, rename it and send SIGHUP ("systemctl reload wirewatch"): no line is lost. logrotate does that as "wirewatch sample logrotate.conf" prints it; do not use "copytruncate", which loses lines.',
      'A log that cannot be written (a full disk) stops nothing: lines wait, about a megabyte of them, then are left out and counted. With [log] file, stderr tells of it.',
      'SIGHUP from a terminal that is closed ends the appliance in order.',
    ),
    'These lines need attention:',
    LOG_LINES.map(([msg, what]) => `${wrapped(msg)}\n${wrapped(what, '    ')}`).join('\n'),
  );
}
