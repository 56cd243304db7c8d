/** Manual, topic `operations`: what can become of a file, and what to do about it. */
import { page, paragraph, points, wrapped } from './text.ts';

/** Log lines that need attention, by their `msg`, and what to do. */
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
    'No rows of the file were applied. The line has its name and the reason. See "A file failed" above.',
  ],
  [
    'file refused',
    'The file name or window is not valid for an export, or the export is switched off. Look in refused/.',
  ],
  [
    'ignored in the drop folder: not a regular file with a UTF-8 name',
    'A folder, link or pipe, or a name that is not UTF-8. Move it away.',
  ],
  [
    'cannot delete an old file from the archive: check its permissions; trying again in an hour',
    'The line names the file and the cause. Ingest continues, and other old files are deleted. Give the user of the appliance permission to delete the file, or move away what is in its place.',
  ],
  [
    'cannot move files without a record out of the archive: check its permissions; trying again',
    'After the end of the log was lost, archived files without a record are read again. The line names the first file that could not be moved. Give the user of the appliance permission to move it.',
  ],
  [
    'cannot delete the rows of removed subscriptions from the log: trying again in an hour',
    'The rows are already gone from detections.db, and no client sees them. The line has the cause. If the disk is full, free space: the log is rewritten one segment at a time. If the log is damaged, run "wirewatch verify" and restore a backup. The next start also tries again.',
  ],
  [
    'cannot delete temporary files of interrupted readings',
    'Files named skipped-N.ndjson in .taken/ are no longer needed. The next start tries again, or you can delete them.',
  ],
  [
    'cannot process a dropped file: check its permissions; trying again',
    'The user of the appliance needs permission to read and move the file. The appliance tries again every ten seconds.',
  ],
  [
    'cannot move a processed file: check the permissions of the folder',
    'The file was processed, but cannot be moved to its folder yet. Give the user of the appliance write permission there.',
  ],
  [
    'cannot use the drop folder: check that it exists and can be read and written',
    'No files are read until the drop folder works again. Then the log says "the drop folder can be used again".',
  ],
  [
    'no file events from the drop folder: scanning it instead',
    'The file system does not report changes. The appliance scans the folder every [ingest] rescan_seconds.',
  ],
  [
    'cannot move a failed file to the archive after its window was read',
    'The file stays in failed/ and is no longer needed. Delete it together with its .reason.json, or give the user of the appliance permission to move it.',
  ],
  [
    'the disk is full: ingest waits for free space',
    'Clients can still read. Free space; ingest resumes automatically within ten seconds, and no data is lost.',
  ],
  [
    'ingest stopped because of an error; clients can still read. Fix the cause and restart',
    'The disk or the database failed. Committed data is safe. The line has the cause: fix it, and restart the appliance.',
  ],
  [
    'access.db cannot be read: ingest waits and resumes automatically',
    'Keys cannot be checked either. Fix the permissions of access.db, or restore the file. No restart is needed.',
  ],
  [
    'cannot write the final notes',
    'During a stop, some notes could not be written. No data is lost, and the next start recovers them. Check the disk.',
  ],
  [
    'cannot resume a backfill: check its permissions; trying again',
    'A backfill is half applied, and its file in .taken/ cannot be read. Restore the file, or give the user of the appliance permission to read it. The appliance tries again every ten seconds.',
  ],
  [
    'rebuilding detections.db from the log: detections are unavailable until that is done',
    'detections.db was missing, damaged, from another version, or older than its log; the line has the reason. Until the rebuild is done, requests for detections return 500 with Retry-After. No data is lost.',
  ],
  [
    'detections.db is damaged',
    'The comparison with the log found a difference; the line has the details. Restart the appliance: it rebuilds the database, and no data is lost. Check the disk.',
  ],
  [
    'the log is damaged',
    'Verification found that part of the log is missing or changed. See the alert "log damaged".',
  ],
  [
    'detections.db was not compared with the log',
    'The line has the reason: the log is damaged, or the disk has too little free space for the comparison (a fifth of the size of detections.db plus 512 MiB). Only the log was checked.',
  ],
  ['cannot compare detections.db with the log: trying again within an hour', 'The line has the cause.'],
  [
    'access.db was rebuilt from its log',
    'access.db was missing, damaged, from another version, or different from its log; the line has the reason. No data is lost. If the disk was the cause, replace it.',
  ],
  [
    'access.db was older than its log and was brought up to date',
    'An older access.db was restored, or a command was killed between two writes. No data is lost, and revoked keys stay revoked.',
  ],
  [
    'the access log is damaged, but access.db is complete',
    'The appliance runs, but access.db could not be rebuilt from access-log/. Check the disk, and restore the damaged segment from a backup.',
  ],
  [
    'the appliance cannot start',
    'Logged only if [log] file is set; otherwise the reason is on stderr. The reason says what to do.',
  ],
  [
    'a fault ended the appliance',
    'The appliance must be started again; a service manager does that automatically. The line has the cause: keep it for a bug report.',
  ],
  [
    'http server',
    'The listening socket failed, for example because no file descriptors were left. The line has the cause.',
  ],
  [
    'base_url is not set: links and error types name the listening address, which others may not reach. Set it with --base-url',
    'Logged at every start without [server] base_url. Harmless if all clients are on this machine.',
  ],
  [
    'keys cross the network in the clear: there is neither a certificate nor a trusted proxy',
    'Logged at every start if [server] host is reachable from other machines and the appliance uses plain HTTP. Set [server] tls_certificate and tls_key, or use a TLS proxy: on this machine with [server] host 127.0.0.1, or on another machine with its address in [server] trusted_proxies.',
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
    'a key still works although the configuration has replaced it',
    'An entry in [[keys]], or its secret file, now contains another key. The previous key is not revoked automatically. When its client uses the new key, run the command in the line: wirewatch key revoke ID.',
  ],
  [
    'existing entries differ from the configuration and were not changed',
    'An account, subscription or key in the configuration was later changed, suspended or revoked by a command. Update the configuration file; see "wirewatch manual preseeding".',
  ],
  [
    'these secret files can be read by every user of this machine',
    'Remove the permission for others (chmod o-r), and consider creating new keys.',
  ],
  [
    'the administration can be reached from other machines: whoever reaches it can read it',
    'Logged at every start if [admin] host is reachable from other machines. Protect the port with a firewall or a proxy.',
  ],
  [
    'a page of the administration failed',
    'The line has the cause: keep it for a bug report. The API is not affected.',
  ],
  [
    'unavailable',
    'Keys cannot be checked, and requests return 503. The line has the cause: access.db cannot be read.',
  ],
  [
    'log lines were lost: the log could not be written',
    'The disk of the log was full, or the program that reads the log was too slow. The line has the number of lost lines. Nothing else was affected.',
  ],
  [
    'cannot reopen the log file: lines still go to the previous file',
    'After SIGHUP, the file in [log] file could not be opened; the line has the cause. Fix its folder and send SIGHUP again.',
  ],
  [
    'the service manager cannot be told: is systemd-notify installed?',
    'NOTIFY_SOCKET is set (Type=notify), but the program systemd-notify is missing or failed. The appliance runs, but systemd does not know it. Install the program, or use Type=exec.',
  ],
  [
    'a photo changed or could not be read while it was being sent: the response was cut off',
    'The photo was modified while it was being read, or the disk failed; the line has the cause. Write photos under another name, then rename them.',
  ],
  [
    'the disk is full: missing entries of the configuration were not created. Free space and restart',
    'The appliance started on a full disk. Existing keys work, and ingest waits for free space. The next start creates the accounts, subscriptions and keys that are new in the configuration.',
  ],
  [
    'cannot save the row counts of the daily allowance: a restart would lose them',
    'usage.db cannot be written; the line has the cause. Rows are still counted, and saved as soon as possible: then the log says "row counts can be saved again". If usage.db is damaged, restart the appliance.',
  ],
  [
    'usage.db cannot be used: the rows read today are counted from zero again',
    'The line has the reason. Clients can use their daily allowance once more today; no other data is lost. The damaged file is kept as usage.db.damaged until the next time: delete it. If the disk was full, the file stays in place.',
  ],
  [
    'alert opened',
    'A problem was found. The line says what it is, whether it needs someone now (page_worthy), and what to do. See "wirewatch manual alerts".',
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
    'The log does not contain the end of the existing backup: an older state was restored, or another machine writes to the same folder. If this is unexpected, find the cause before [backup] keep_days have passed: the old branch is deleted then.',
  ],
  [
    'the end of the log is lost: versions are raised once, and positions continue a year ahead',
    'A client sent a cursor for a position that the log does not contain, because an older data folder was restored. See the alert "end of log lost".',
  ],
  [
    'reading archived files without a record again',
    'The end of the log was lost, and these files came after it. Nothing needs to be done.',
  ],
  [
    'completed an interrupted restore',
    'A crash interrupted "wirewatch restore" after the new state was complete. The previous state is in replaced-TIME/ in the data folder.',
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
