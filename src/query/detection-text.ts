/**
 * The text of a detection: its newest row in the change stream without the member `event`, unless it has been scored
 * again since. It is compared with its checksum as it is stored, and `event` is cut out of what was read.
 */
import { withoutEvent } from '../detection/match.ts';
import {
  type Checksums,
  checksumsSql,
  requireChecksum,
  requireChecksums,
  type StoredText,
} from '../store/row-checksum.ts';

/** Columns of {@link detectionTables}. */
const BODY = 'coalesce(rescored.body, row.body)';
const CHECKSUM = 'coalesce(rescored.checksum, row.checksum)';
const POSITION = 'iif(rescored.place IS NULL, row.position, 0)';

/** @param table has the column `place` of a detection */
export function detectionTables(table: string): string {
  return `${table} CROSS JOIN stream_row AS row ON row.place = ${table}.place
    LEFT JOIN rescored ON rescored.place = ${table}.place`;
}

/** Columns of {@link StoredText}. */
export const DETECTION_COLUMNS = `row.place AS place, ${POSITION} AS position, CAST(${BODY} AS BLOB) AS body, ${CHECKSUM} AS checksum`;

/** Aggregates for {@link detectionsOf}. */
export const DETECTIONS_COLUMNS = `CAST(group_concat(${BODY}, ',') AS BLOB) AS data,
  ${checksumsSql('row.place', POSITION, BODY, CHECKSUM)}`;

/** @returns one detection as JSON text; @throws DatabaseDamage */
export function detectionOf(stored: StoredText): string {
  requireChecksum(stored);
  return withoutEvent(stored.body.toString());
}

/** @returns detections as JSON texts, with commas between them; @throws DatabaseDamage */
export function detectionsOf(data: Buffer, checksums: Checksums): Buffer {
  const { lengths } = requireChecksums(data, checksums, 0);
  const result = Buffer.allocUnsafe(data.length);
  let row = 0;
  let from = 0;
  let to = 0;
  for (const length of lengths) {
    const event = eventAt(data, row);
    // A detection that was scored again has none.
    if (event >= 0) {
      to += data.copy(result, to, from, event);
      from = event + EVENT_BYTES;
    }
    row += length + 1;
  }
  to += data.copy(result, to, from);
  return result.subarray(0, to);
}

const BEFORE_ID = '{"id":"'.length;
const BEFORE_VERSION = '","version":'.length;
const [QUOTE, COMMA, E, V] = Buffer.from('",ev');
/** Its length is the same for each event. */
const EVENT_BYTES = '"event":"created",'.length;

/** Where the member `event` begins, behind id and version; -1: there is none. @param row where the text begins */
function eventAt(data: Buffer, row: number): number {
  let at = row + BEFORE_ID;
  while (data[at] !== QUOTE) at += 1;
  at += BEFORE_VERSION;
  while (data[at] !== COMMA) at += 1;
  return data[at + 2] === E && data[at + 3] === V ? at + 1 : -1;
}
