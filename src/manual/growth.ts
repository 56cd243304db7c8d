/** Manual, topic `growth`: how much room it takes, and what it costs to run. */
import { measured, shown } from './measured.ts';
import { page, paragraph, points } from './text.ts';

export function growthText(): string {
  const bytes = measured('earlier', 'detections.db for each new detection');
  const logBytes = measured('earlier', 'the log for each new detection');
  const memory = measured('limits', 'most memory resident meanwhile');
  const largest = '6 million rows: detections.db-wal at its largest';
  const cold = measured('growth', '10 million rows: page of one stream, cold');
  const warm = measured('growth', '10 million rows: page of one stream, warm');
  const start = measured('growth', '10 million rows: start, until it listens');
  return page(
    'GROWTH',
    paragraph(`
      What was measured with sample exports ("wirewatch generate"), whose detections are about 1 KB of JSON. Measure
      with your own: the sizes of the files before and after a day of exports.`),
    '1. On disk',
    points(
      `detections.db: ${shown(bytes)} bytes for a new detection, 1.1 KB for each further version of it. A million new detections are ${(bytes / 1000).toFixed(2)} GB. Nothing is deleted, since a cursor never expires, unless a subscription is removed.`,
      `detections.db-wal: as much as one transaction adds, emptied afterwards. A window is one transaction, however large: leave room for the largest. A backfill is applied in bounded parts: it was ${shown(measured('growth', largest))} MB large for files of two million rows.`,
      'archive/ in the drop folder: the files as they came, 115 bytes a row as ndjson.gz. [ingest] archive_days deletes old ones; what is deleted cannot be read again where the end of the log was lost.',
      `log/: ${shown(logBytes)} bytes for a new detection, less than a tenth of detections.db, and 1 KB for each file: a year of 100,000 new detections a day is ${((logBytes * 36.5) / 1000).toFixed(1)} GB. It shrinks only when a subscription is removed, or with "wirewatch rebuild --log".`,
      'access.db: under 1 MB, and another for each few thousand keys. access-log/: about 500 bytes for each change of an account, a subscription or a key. It is never cut.',
      'usage.db: under 1 MB.',
      'A backup is as large as the logs, about a tenth of the databases. A restore, and "restore --rehearse", need room for new databases beside the old ones.',
      'The log: 250 bytes a request at level info. It goes to stderr or to [log] file, and is not rotated by the appliance.',
    ),
    '2. In memory',
    points(
      `About 130 MB at rest. ${shown(memory)} MB were resident at most while a file of a million rows was applied and two clients read. A larger file takes no more: files are read in pieces, and pages of the database are kept within a bound.`,
      'Each connection of a client takes some tens of KB, and a page of a thousand rows 1 MB until the client has taken it; [server] max_connections bounds it.',
    ),
    '3. In time',
    points(
      `A page takes as long with ten years of history as with a day: it is found by its place, and no query counts or sorts what lies behind. Of ten million detections in twenty streams, a page of a thousand took ${shown(warm)} ms where the database was in the page cache, and ${shown(cold)} ms from the disk.`,
      `A start took ${shown(start)} ms with ten million detections. It takes longer where the databases have to be made anew.`,
      'The topic speed has all that was measured, and how.',
    ),
    '4. Limits that do not move',
    points(
      'Positions in the stream count microseconds: they last for two hundred years. Versions and ids are whole numbers below 10^15.',
      'SQLite holds up to 281 TB in a file; the disk ends first.',
      'One machine, one process, one data folder. There is no replica: what survives the machine is the backup and the archive.',
    ),
  );
}
