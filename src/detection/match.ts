/**
 * A match as a detection shows it: everything but `id`, `version` and `event`. It is rendered once, when its row is read
 * from an export, and stored behind these as text: serving a page copies bytes and renders nothing.
 */
import { crc32 } from 'node:zlib';
import { BANDS, bandStep } from './band.ts';
import { type ContentType, perContentType, TYPE_RULES } from './content-type.ts';
import { columnOf, type DetectionMembers, type ExportRow, FIELDS, NULLABLE_OBJECTS } from './fields.ts';

/** Marks in stored text where the base address is inserted when a row is read. JSON text has no such character. */
export const BASE_URL_MARK = '\u0001';

const OWN_ADDRESS_RENDERED = '"image_url":"\\u0001/';
const OWN_ADDRESS_STORED = `"image_url":"${BASE_URL_MARK}/`;

/** Members in the API's order; a member that the content type lacks is absent. */
export interface Match extends Omit<DetectionMembers, 'id' | 'version' | 'event' | 'content_type'> {
  content_type: ContentType;
}

export interface RenderOptions {
  /** The default of `exported_at`: when the row was ingested. */
  readonly exportedAtDefault: string;
  /** The path and signature of the appliance's own address of a photo, from `/` on. */
  readonly photoPath: (sourceInternalId: number) => string;
}

/** The match that a checked row of an export states, as {@link renderMatch} would render it. */
export function renderRow(contentType: ContentType, row: ExportRow, options: RenderOptions): string {
  const isOwnPhoto = TYPE_RULES[contentType].has_own_address && row.source_image_url === null;
  const values: Values = {
    ...row,
    source_image_url: isOwnPhoto
      ? `${BASE_URL_MARK}${options.photoPath(row.source_internal_id)}`
      : row.source_image_url,
    content_type: contentType,
    match_type: TYPE_RULES[contentType].match_type,
    exported_at: row.exported_at ?? options.exportedAtDefault,
    strength_band: BANDS[bandStep(contentType, row.strength_score)] ?? null,
    customer: null,
    classification: null,
  };
  return stored(contentType, renderObject(MEMBERS[contentType], values));
}

/** Renders a match for storage: JSON text without its opening brace, the base address replaced by its mark. */
export const renderMatch = (match: Match) => stored(match.content_type, JSON.stringify(match));

/** Reads what {@link renderMatch} gave. */
export const readMatch = (rendered: string): Match =>
  JSON.parse(`{${rendered.replace(OWN_ADDRESS_STORED, OWN_ADDRESS_RENDERED)}`);

/** What filters read: columns of a stored row, beside its text. */
export const FILTER_COLUMNS = 'publisher_id, domain, band, score, print, source_hash, article_id';
export const FILTER_COLUMNS_COUNT = FILTER_COLUMNS.split(',').length;

/** Their values, in this order. */
export type FilterValues = readonly (string | number | null)[];

type Filtered = 'article_publisher_id' | 'article_domain' | 'article_print' | 'source_id' | 'article_id';

/** Of the match that a row states, without rendering it. */
export function filterValuesOf(contentType: ContentType, row: Pick<ExportRow, Filtered | 'strength_score'>) {
  return [
    row.article_publisher_id,
    row.article_domain,
    bandStep(contentType, row.strength_score),
    Math.round(row.strength_score),
    Number(row.article_print),
    row.source_id === null ? null : hashOfSource(row.source_id),
    row.article_id,
  ];
}

export function filterValues({ content_type, source, strength, article }: Match): FilterValues {
  return filterValuesOf(content_type, {
    article_publisher_id: article.publisher?.id ?? null,
    article_domain: article.domain,
    article_print: article.print === true,
    article_id: article.id,
    source_id: source.id,
    strength_score: strength.score,
  });
}

/**
 * What the filter `source_id` searches: the id itself, often over 50 characters, is stored once, in the text.
 * @returns a signed integer of 32 bits, which SQLite stores in four bytes
 */
export const hashOfSource = (id: string) => crc32(id) | 0;

/** A detection as the period and id endpoints show it, from its rendered match. */
export const renderDetection = (id: string, version: number, rendered: string): string =>
  `{"id":"${id}","version":${version},${rendered}`;

/** A version of a detection as the change stream shows it, from its rendered match. */
export const renderStreamRow = (id: string, version: number, rendered: string): string =>
  `{"id":"${id}","version":${version},"event":"${version === 1 ? 'created' : 'updated'}",${rendered}`;

/** The rendered match within what {@link renderDetection} or {@link renderStreamRow} gave. */
export const renderedMatchOf = (body: string) => body.slice(body.indexOf('"content_type":'));

type Values = Readonly<Record<string, string | number | boolean | null>>;

/** A member of a detection's JSON: a value from a column, or an object. */
interface Member {
  /** What precedes the value: a comma, the name, a colon. */
  readonly before: string;
  readonly column: string;
  readonly type: (typeof FIELDS)[number]['type'] | 'object';
  readonly members: readonly Member[];
  /** The column whose absence makes the object null. */
  readonly nullBy: string | null;
}

const ADDED_WHEN_STORED = ['id', 'version', 'event'];
const MEMBERS = perContentType((contentType) => membersOf(contentType, ''));

/** @param prefix path of the object with a trailing dot; empty for the detection itself */
function membersOf(contentType: ContentType, prefix: string): Member[] {
  const within = FIELDS.filter(
    ({ path, content_types }) =>
      path.startsWith(prefix) && content_types.includes(contentType) && !ADDED_WHEN_STORED.includes(path),
  );
  const names = new Set(within.map(({ path }) => path.slice(prefix.length).split('.')[0] ?? ''));
  return [...names].map((name, index) => {
    const path = `${prefix}${name}`;
    const field = within.find((candidate) => candidate.path === path);
    return {
      before: `${index === 0 ? '' : ','}"${name}":`,
      column: columnOf(path),
      type: field?.type ?? 'object',
      members: field === undefined ? membersOf(contentType, `${path}.`) : [],
      nullBy: (NULLABLE_OBJECTS as readonly string[]).includes(path) ? columnOf(`${path}.id`) : null,
    };
  });
}

function renderObject(members: readonly Member[], values: Values): string {
  let text = '{';
  for (const member of members) text += member.before + renderValue(member, values);
  return `${text}}`;
}

/** Concatenated, since a generic object would take three times as long to build as one written out. */
function renderValue({ type, column, members, nullBy }: Member, values: Values): string {
  if (type === 'object')
    return nullBy !== null && values[nullBy] === null ? 'null' : renderObject(members, values);
  const value = values[column] ?? null;
  if (type === 'string' && value !== null) return JSON.stringify(value);
  return type === 'timestamp' && value !== null ? `"${value}"` : String(value);
}

/** Without the opening brace, the base address replaced by its mark. */
function stored(contentType: ContentType, json: string): string {
  const text = TYPE_RULES[contentType].has_own_address
    ? json.replace(OWN_ADDRESS_RENDERED, OWN_ADDRESS_STORED)
    : json;
  return text.slice(1);
}
