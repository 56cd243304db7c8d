/** Manual, topic `growth`: how much room it takes, and what it costs to run. */
import { page, paragraph, points } from './text.ts';

export function growthText(): string {
  return page(
    'GROWTH',
    paragraph(`
      What was measured with sample exports ("wirewatch generate"), whose detections are about 1 KB of JSON. Measure
      with your own: the sizes of the files before and after a day of exports.`),
    '1. On disk',
    points(
      'detections.db: 1.26 KB for a new detection, 1.1 KB for each further version of it. A million new detections are about 1.3 GB. "npm run bench -- --against COMMIT" measures it, beside that of an earlier version. Nothing is deleted, since a cursor never expires, unless a subscription is removed.',
      'detections.db-wal: as much as the file that is being applied adds, emptied afterwards. Leave room for the largest backfill part and the largest window at once.',
      'archive/ in the drop folder: the files as they came, 115 bytes a row as ndjson.gz. [ingest] archive_days deletes old ones; what is deleted cannot be read again where the end of the log was lost.',
      'log/: about a tenth of detections.db, and 1 KB for each file. It shrinks only when a subscription is removed, or with "wirewatch rebuild --log".',
      'access.db: under 1 MB, and another for each few thousand keys. access-log/: about 500 bytes for each change of an account, a subscription or a key. It is never cut.',
      'usage.db: under 1 MB.',
      'A backup is as large as the logs, about a tenth of the databases. A restore, and "restore --rehearse", need room for new databases beside the old ones.',
      'The log: 250 bytes a request at level info. It goes to stderr or to [log] file, and is not rotated by the appliance.',
    ),
    '2. In memory',
    points(
      'About 130 MB at rest. Up to 0.7 GB while a file of a million rows is applied, whatever its size beyond that: files are read in pieces, and pages of the database are kept within a bound.',
      'Each connection of a client takes some tens of KB, and a page of a thousand rows 1 MB until the client has taken it; [server] max_connections bounds it.',
    ),
    '3. In time',
    points(
      'A page takes as long with ten years of history as with a day: it is found by its place, and no query counts or sorts what lies behind.',
      'One processor applies some tens of thousands of rows a second. A second one serves meanwhile.',
      'A start takes a tenth of a second, whatever is stored, unless something has to be made up for.',
      '"npm run bench", in the folder of the source, measures each path on your machine against the least that it could cost there.',
    ),
    '4. Limits that do not move',
    points(
      'Positions in the stream count microseconds: they last for two hundred years. Versions and ids are whole numbers below 10^15.',
      'SQLite holds up to 281 TB in a file; the disk ends first.',
      'One machine, one process, one data folder. There is no replica: what survives the machine is the backup and the archive.',
    ),
  );
}
