/**
 * The text of a detection: its newest row in the change stream without the member `event`, unless it has been scored
 * again since. It is compared with its checksum as it is stored; the base address takes the place of its mark then.
 */
import { TYPE_RULES } from '../detection/content-type.ts';
import { streamOfId } from '../detection/id.ts';
import { BASE_URL_MARK } from '../detection/match.ts';
import { releaseMemory } from '../release-memory.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { numbersOf, requireChecksums, sealsSql } from '../store/row-checksum.ts';
import { projected } from './projection.ts';
import type { PageQuery, Stored } from './stored-streams.ts';

const BODY = 'coalesce(rescored.body, row.body)';
const CHECKSUM = 'coalesce(rescored.checksum, row.checksum)';

/** @param table has the column `place` of a detection */
export const detectionTables = (table: string) => `
    ${table} CROSS JOIN stream_row AS row ON row.place = ${table}.place
    LEFT JOIN rescored ON rescored.place = ${table}.place`;

/** Aggregates for {@link detectionsOf}. */
export const DETECTIONS_COLUMNS = `CAST(group_concat(${BODY}, ',') AS BLOB) AS data,
  group_concat(row.place) AS places, ${sealsSql(BODY, CHECKSUM)}`;

/** What {@link DETECTIONS_COLUMNS} gives; null: there are no rows. */
export type DetectionTexts = Readonly<{ data: Buffer | null; places: string; seals: string }>;

/** @returns detections as JSON texts, with commas between them, in the memory of `data`; @throws DatabaseDamage */
export function detectionsOf(data: Buffer, { places, seals }: DetectionTexts): Buffer {
  const lengths = requireChecksums(data, numbersOf(places), seals);
  let row = 0;
  let from = 0;
  let to = 0;
  const keep = (end: number) => {
    data.copyWithin(to, from, end);
    to += end - from;
  };
  for (const length of lengths) {
    const event = eventAt(data, row);
    // A detection that was scored again has none.
    if (event >= 0) {
      keep(event);
      from = event + EVENT_BYTES;
    }
    row += length + 1;
  }
  keep(data.length);
  return data.subarray(0, to);
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

const MARK = BASE_URL_MARK.charCodeAt(0);

/** The base address, escaped for JSON text. */
export const jsonBaseUrl = (baseUrl: string) => Buffer.from(JSON.stringify(baseUrl).slice(1, -1));

/** @param stored one detection; @param baseUrl of {@link jsonBaseUrl} */
export const withBaseUrl = (stored: string, baseUrl: Buffer): string =>
  stored.replace(BASE_URL_MARK, () => baseUrl.toString());

/** A page as clients get it. @param stored detections of the streams, not to be used afterwards */
export function shownTexts(stored: Buffer, { streams, projection, baseUrl }: Stored<PageQuery>): Buffer {
  const withOwnAddresses = streams.some(({ content_type }) => TYPE_RULES[content_type].has_own_address);
  return projected(withOwnAddresses ? putBaseUrl(stored, baseUrl) : stored, projection);
}

/** Searches the bytes of a complete page: SQLite's replace() takes twice as long as reading the page. */
function putBaseUrl(json: Buffer, baseUrl: Buffer): Buffer {
  const marks: number[] = [];
  for (let at = json.indexOf(MARK); at >= 0; at = json.indexOf(MARK, at + 1)) marks.push(at);
  if (marks.length === 0) return json;
  const result = Buffer.allocUnsafe(json.length + marks.length * (baseUrl.length - 1));
  let from = 0;
  let to = 0;
  for (const mark of marks) {
    to += json.copy(result, to, from, mark);
    to += baseUrl.copy(result, to);
    from = mark + 1;
  }
  json.copy(result, to, from);
  releaseMemory(json);
  return result;
}

export const ONE_DETECTION = `SELECT ${DETECTIONS_COLUMNS} FROM ${detectionTables('detection')} WHERE detection.id = @id`;

const oneDetection = preparedOnce<DetectionTexts>(ONE_DETECTION);

/**
 * One detection, its latest version, as JSON text; null where no stream of the key has it.
 * @param streams every one of the key: detections of others do not exist for it; @throws DatabaseDamage
 */
export function readOneDetection(
  db: Database,
  id: string,
  { streams, projection, baseUrl }: Pick<PageQuery, 'streams' | 'projection' | 'baseUrl'>,
): string | null {
  if (!streams.includes(streamOfId(id))) return null;
  const found = oneDetection(db).get({ id });
  if (found?.data == null) return null;
  const text = detectionsOf(found.data, found);
  if (!text.toString().startsWith(`{"id":"${id}",`))
    throw new DatabaseDamage(`the place of ${id} has another detection`);
  return projected(putBaseUrl(text, baseUrl), projection).toString();
}
