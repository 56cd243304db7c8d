/** Manual, topic `speed`: what was measured, how, against what, and what limits it. */
import { MEASURED, type MeasuredFigure, type MeasuredGroup, shown } from './measured.ts';
import { page, paragraph, points } from './text.ts';

export function speedText(): string {
  const { limits, earlier, growth, peers } = MEASURED;
  return page(
    'SPEED',
    paragraph(`
      Everything here was measured by "npm run bench" in the folder of the source, with exports of "wirewatch generate"
      (detections of about 1 KB of JSON), client and server on one machine with two processors. Times differ from
      machine to machine, and on a shared one from minute to minute, so what counts is the ratio: both sides of it were
      measured in turn, in one run, on the same rows. A ratio above 1 is better, also where less is better. Each section
      names its command.`),
    ...section('1. Against the least that it could cost', limits, [
      "The bare side is Node's own HTTP server with one query on the same database and no keys, cursors or checks; for the ingest, SQLite inserting the same rows into the same tables in one transaction, without a log, a parser or a check.",
      'The waits beside the ingest of a million rows are of single requests, one after the other; beside them, those of a bare server that shares the machine and has nothing else to do.',
    ]),
    ...section('2. Against an earlier version', earlier, [
      "Before, a detection's text was stored twice, and rows lay in the order in which they came, whatever their stream.",
    ]),
    ...section('3. Much history', growth, [
      'Files of two million rows in twenty streams, one after the other. Cold: the database was dropped from the page cache, and the appliance started again.',
      'They are backfills, which are applied in bounded transactions, so detections.db-wal stays small. A file of a window is one transaction, however large, and is in detections.db-wal as a whole until it is committed.',
    ]),
    ...section('4. Other programs: pages of 1,000 rows', peers, [
      'nginx sends the bytes of one page from a file: what a cache in front of the appliance could do, and what the appliance loses by asking the database, checking what it says, and a key, each time.',
      'PostgreSQL has the same rows in one table, ordered as here. A thin server in Node asks it for a page, row by row or put together to one text, and checks nothing. Both keep a connection for each client.',
    ]),
    '5. What limits it',
    points(
      'Ingest: two threads, each busy for most of the time. Of the 12 microseconds that the reading thread spends on a row, by a profile (perf), half goes into JSON (read, checked, written), a tenth into packing the log, and the rest into addresses, domains, times and the collection of garbage. The writing thread spends 10 microseconds, seven of them in SQLite: most of it on finding the place of a new id and of a new time in their indexes. More processors than two do not help a single file.',
      'Pages: a page of 1,000 detections takes 2 milliseconds of processor time, of which SQLite has 0.35 where the rows are in its memory (0.9 for a page of a period, whose rows do not lie together). The rest is the copy of a megabyte into the socket, checks of the text, and the request itself.',
      'Light requests: system calls. The key is looked up, and the head of the stream read, for each.',
    ),
  );
}

function section(title: string, group: MeasuredGroup | undefined, remarks: readonly string[]): string[] {
  if (group === undefined) return [];
  const { how, commit, day, machine, figures } = group;
  return [
    title,
    paragraph(`${how}: ${day}, commit ${commit}, ${machine}.`),
    points(...figures.map(line)),
    ...remarks.map(paragraph),
  ];
}

function line({ what, against, unit, now, before, ratio }: MeasuredFigure): string {
  const beside = before === null ? '' : `, beside ${shown(before)}`;
  const times = ratio === null ? '' : ` (ratio ${ratio.toFixed(2)})`;
  const other = against === undefined ? '' : `, against ${against}`;
  return `${what}${other}: ${shown(now)} ${unit}${beside}${times}`;
}
