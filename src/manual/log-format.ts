/** Manual, topic `log-format`: what stands in the log, for whoever reads it without this program. */
import { LOG_FORMAT } from '../history/format.ts';
import { fenced, page, paragraph, points } from './text.ts';

export function logFormatText(): string {
  return page(
    'LOG FORMAT',
    paragraph(`
      Every change of detections, windows and files is appended to log/ in the data folder before it is in
      detections.db, and every change of accounts, subscriptions and keys to access-log/ before it is in access.db. The
      databases are made from these logs, and can be thrown away at any time. This page describes format ${LOG_FORMAT}.
      Every build makes from a log of this format what was recorded then.`),
    fenced('sh', 'zstdcat wirewatch-data/log/*.zst | jq'),
    '1. Files',
    points(
      'A log is a folder of segments, each named by the number of its first entry: 000000000001.zst. Segments are only appended to. One is closed at the first end of an entry behind 64 MiB, where another version of the program goes on, and where a subscription was removed. Then it never changes, except that the rows of removed subscriptions are taken out: it is replaced by one with the same entries, whose numbers, ids and times stay. purged.json in log/ notes of which streams (ordinals) that is done.',
      'A segment is an ordinary zstd file (RFC 8878) of lines of JSON (NDJSON, UTF-8). It consists of frames, each behind a skippable frame of 12 bytes: length, CRC-32 and kind of the zstd frame that follows, each a 32-bit integer with its lowest byte first. Kinds: 0 the header, 1 lines, 2 the end of an entry.',
      'The first line of a segment is its header: {"wirewatch_log":"detections","format":1,"program":"0.1.0","first_entry":1}. The log of access.db says "access".',
    ),
    '2. Entries',
    paragraph(`
      An entry is one transaction: any number of frames, the last of which ends with the commit line. Without its commit
      line an entry is not there: it was cut off by a crash.`),
    fenced(
      'json',
      '{"commit":{"entry":12,"id":"9f2c66c1d0a3b4e5","after":"01d3…","at":"2026-11-20T08:12:01Z","operation":{"kind":"file","file":7,"name":"newswire.20261120T0800Z.ndjson.gz","outcome":"applied"},"frames":3,"checksum":2868124077}}',
    ),
    points(
      'entry counts from 1 without gaps; id is random; after is the id of the entry before, null for the first. A log that was begun anew (wirewatch rebuild --log) goes on with the numbers of the one before it; its first entry, of kind "snapshot", is all that the database held. Otherwise a log begins with entry 1.',
      'at is when it was written. operation says what was done; in access-log/ also who did it (actor, the user of the operating system; sudo_user) and with which command.',
      'frames is how many frames precede this one in the entry; checksum is the CRC-32 of their CRC-32s, in their order.',
    ),
    '3. Rows of tables',
    points(
      '{"put":"export_window","row":{…}}: the row with this primary key is as given from now on. Members are the columns of the table; a BLOB is hexadecimal.',
      '{"delete":"api_key","row":{…}}: there is no row with this primary key.',
      'In log/: export_window, export_expectation, window_look, ingest_file, delivery, version_epoch; also stream: see 4. In access-log/: installation, account, subscription, api_key, api_key_subscription, ingest_pause, ended_key.',
    ),
    '4. Detections',
    points(
      '{"row":ID, …detection}: a row of an export, checked and rendered, without its version. Lines that follow say what became of it.',
      '{"created":N,"position":P,"version":V}: the next N of those rows are new detections with version V, at the positions P, P+1, … of the change stream.',
      '{"passed":N}: the next N of those rows changed nothing, or have a line of their own.',
      '{"changed":ID,"position":P,"version":V, …detection}: the detection is as given from now on, and stands so at position P of the change stream.',
      '{"rescored":ID,"version":V, …detection}: it was scored again and looks the same otherwise; the change stream does not say so.',
      '{"removed":S}: all detections of subscription S are gone, and their versions. Before it stands, for each stream of S, {"put":"stream","row":{…,"removed":1}}, which says where the stream ended.',
      'The same line stands in place of rows that were taken out, before the first of them in a segment; and in a log that was begun anew, for each stream that was removed before. It means that the stream has this ordinal, and no rows.',
      'The detection stands in these lines as clients get it, behind two members that clients do not see: exported_at_given (absent where the export gave none) and url_withheld (the address of a print article that the customer does not see). "\\u0001" at the beginning of source.image_url stands for the base address.',
      'The number of a version within its stream (subscription and content type) is one more than that of the version before it; the first has 1. Streams are numbered (ordinal) from 1 in the order in which they first appear in the log; one that was removed keeps its number, and one of the same name that comes later has the next one.',
    ),
  );
}
