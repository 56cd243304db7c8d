/** Manual, topic `export-format`: the drop folder's public format, for those who write exports. */
import { FORMS } from '../ingest/export-name.ts';
import { LINE_BYTES_MAX } from '../ingest/lines.ts';
import { checkedColumns, columnReference } from './column-reference.ts';
import { fenced, page, paragraph, points } from './text.ts';
import { CSV_WRITER, PYTHON_WRITER, SHELL_WRITER } from './writers.ts';

export function exportFormatText(): string {
  return page(
    'EXPORT FORMAT',
    paragraph(`
      Export files are dropped into the drop folder: [ingest] drop, by default drop in the data folder.
      "wirewatch ingest validate FILE" checks a file against all of what follows, wherever it lies, and changes
      nothing; "wirewatch ingest explain FILE" says besides what it would bring.`),
    '1. Names',
    'EXPORT.WINDOW.FORM            newswire.20261121T1010Z.ndjson.gz\nEXPORT.backfill-LABEL.FORM    newswire.backfill-2025.csv.zst',
    points(
      'EXPORT is newswire (wire stories, content type text) or imagewire (photos, content type image).',
      'WINDOW is the start of a ten-minute window as YYYYMMDDTHHMMZ, in UTC, a multiple of ten minutes. It holds the times from its start up to, not including, the start of the next one. A file that comes before its window has ended waits until it has; one for a window more than a day ahead is refused.',
      `FORM is one of ${FORMS.join(', ')}. Of gz, several members one after the other are read; of zst, several frames.`,
      'LABEL is 1 to 64 of a-z 0-9 . _ - and makes the file a backfill: history outside any window.',
      'A name that starts with a dot, or ends in .tmp, .part or .partial, is being written and is left alone. Any other name goes to refused/ with a reason.',
    ),
    '2. How to write a file',
    points(
      'Write it under a name that is left alone, then rename it within the same file system. The examples below do.',
      'A writer that cannot is covered too: a file is taken once it has not changed for [ingest] quiet_ms, was read to its end, and was found unchanged then. A file that pauses longer than that while it is written uncompressed looks finished: rename, or end it with the trailer and set [ingest] require_trailer.',
      'An uncompressed file of no bytes is taken after [ingest] truncated_seconds without a change; a compressed one that is cut off fails after the same time.',
      'A window in which nothing was found still needs its file, an empty one or one with only the trailer: silence is a stalled export.',
      'Files are read in the order of their windows, backfills last, whatever the order in which they came. The detections do not depend on it.',
    ),
    '3. Rows',
    points(
      'NDJSON: a JSON object a line, the columns as its members. Empty lines are passed over.',
      'CSV as in RFC 4180: a header line with the names of the columns, a comma between fields, double quotes around a field that holds a comma, a quote or a line break. An empty field is null; booleans are true and false. A column that stands there twice is an error.',
      `UTF-8; a byte order mark at the start is skipped. A line has at most ${LINE_BYTES_MAX.toLocaleString('en-US')} bytes.`,
      'Trailer: the last line of an NDJSON file may be {"end_of_export":true,"rows":N}. Where it is there, nothing may follow it, and N must be the number of rows. [ingest] require_trailer makes it a must.',
      'Optional columns may be absent or null; an empty string counts as null.',
      'Columns that are not listed below are passed over, and the record of the file names them ("wirewatch ingest explain" shows them). A column of the other export is an error.',
      `Some columns are the appliance's to give. Where an export carries them, they must agree with it: ${checkedColumns()}. The columns id and version are passed over.`,
    ),
    '4. Types',
    points(
      'Timestamp: ISO 8601 with Z or an offset, such as 2026-11-21T10:10:00Z or 2026-11-21T11:10:00.250+01:00. Fractions of a second are cut. The earliest is [ingest] earliest_time; the latest is a day after the end of the window, for a backfill a day after it is read.',
      'Address: absolute, http or https, with a host, at most 8 KiB, without white space and control characters. It is kept as given; what RFC 3986 forbids in it is percent-encoded.',
      'String: Unicode, at most 4 KiB. Integer and number: in NDJSON a JSON number, not a text.',
    ),
    '5. Columns',
    columnReference(),
    '6. What a row does',
    points(
      'A detection is one item (source_internal_id) found in one article (article_id) for one subscription. Its first row makes version 1.',
      'Of several rows of one detection, the one with the latest last_scored_at gives all fields but first_detected_at, which is the earliest of all. A tie goes to the later exported_at given, then to a fixed order of their content. An older row that comes late can therefore change nothing but first_detected_at.',
      'A change in any field that customers see makes one version more, which the change stream announces. A row that changes only last_scored_at and exported_at brings these up to date and is not announced.',
      'Rows are merged one by one in file order: two rows of one detection in one file can make two versions.',
    ),
    '7. Whole or not at all',
    points(
      'A file with a row that breaks these rules fails: nothing of it is kept, it goes to failed/, and NAME.reason.json beside it names line, column, value and what was expected, for the first twenty errors, and counts all errors by column and kind. Its window is then failed; the topic operations says how to go on.',
      'With [ingest] bad_rows = "skip" such rows are left out, written with their reasons to NAME.skipped.ndjson beside the archived file, and the rest is applied. The notes end at 4 MiB; a last line {"more_rows":N} counts the rows that are not noted. A file with more than 100 bad rows that are more than a tenth of its rows fails: then the writer is wrong, and not a row. What concerns the file as a whole (packing, header, trailer; in CSV a line that is too long or no UTF-8, since a record may span lines) fails it all the same.',
      'A row of a subscription or content type that the appliance does not have is no error: it is passed over and counted in the record of the file, unknown_rows. Once the subscription is there, "wirewatch ingest replay" brings such rows in.',
      'A good file ends in archive/, in a folder of the UTC day on which it was read. Where a name is taken, a number is put before the form. Nothing is overwritten, and nothing deleted but what [ingest] archive_days lets go.',
    ),
    '8. Corrections, repetitions, backfills',
    points(
      'The same window may be dropped again: its rows are merged like any others. A correction can change a row by a later last_scored_at (or exported_at); it cannot withdraw one.',
      'Content that was applied before for the same window or label changes nothing; the file is archived as repeated.',
      'A backfill is checked to its end first, then applied in parts of about 20,000 rows, which a crash or a stop does not lose; window files that come meanwhile are read in between. Its rows count as estimated (first_detected_estimated) unless they say otherwise.',
      'The exports are independent: files for an export that is switched off ([exports.imagewire] enabled = false) are refused.',
    ),
    '9. Examples',
    'Shell, NDJSON:',
    fenced('sh', SHELL_WRITER),
    'Shell, CSV:',
    fenced('sh', CSV_WRITER),
    'Python 3, the window that has just ended:',
    fenced('python', PYTHON_WRITER),
  );
}
