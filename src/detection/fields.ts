/**
 * The field table: every field of a detection, once, in the API's order, with the column of the export files that it comes
 * from. Rendering, projection, the schema endpoint, the OpenAPI document and the checks of columns are made from it.
 */
import { CONTENT_TYPES, type ContentType, NUMBER_MAX } from './content-type.ts';

export const FIELD_TYPES = ['string', 'integer', 'number', 'boolean', 'timestamp'] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** What a column of an export file may hold. */
export type ColumnKind =
  | { readonly type: 'integer'; readonly least: number; readonly most: number }
  | { readonly type: 'score' }
  | { readonly type: 'timestamp'; readonly bound: 'none' | 'latest' | 'both' }
  | { readonly type: 'boolean' }
  | { readonly type: 'string'; readonly characters_max?: number; readonly trimmed?: boolean }
  | { readonly type: 'address' };

export interface Field {
  /** Dotted path in the JSON detection. */
  readonly path: string;
  readonly type: FieldType;
  readonly nullable: boolean;
  readonly content_types: readonly ContentType[];
  readonly description: string;
  /** The column of export files that gives it; null: Wirewatch derives it. */
  readonly column: { readonly name: string; readonly kind: ColumnKind; readonly required: boolean } | null;
}

const BOTH = CONTENT_TYPES;
const TEXT = ['text'] as const;
const IMAGE = ['image'] as const;

/** Characters (code points) of `source.id`, and of the parameter `source_id`. */
export const SOURCE_ID_CHARACTERS_MAX = 200;

const ID = { type: 'integer', least: 1, most: NUMBER_MAX } as const;
const NUMBER = { type: 'integer', least: 0, most: NUMBER_MAX } as const;
const SCORE = { type: 'score' } as const;
const STRING = { type: 'string' } as const;
const TIMESTAMP = { type: 'timestamp', bound: 'none' } as const;
const BOUNDED_TIME = { type: 'timestamp', bound: 'both' } as const;
const ADDRESS = { type: 'address' } as const;
const BOOLEAN = { type: 'boolean' } as const;

const TYPE_OF_KIND = {
  integer: 'integer',
  score: 'number',
  timestamp: 'timestamp',
  boolean: 'boolean',
  string: 'string',
  address: 'string',
} as const satisfies Record<ColumnKind['type'], FieldType>;

/** Every row gives it. */
const required = fromColumn(BOTH, false, true);
/** Null where the row does not give it. */
const optional = fromColumn(BOTH, true, false);
const optionalText = fromColumn(TEXT, true, false);
const optionalImage = fromColumn(IMAGE, true, false);
/** Where the row does not give it, Wirewatch knows a value. */
const defaulted = fromColumn(BOTH, false, false);
const defaultedText = fromColumn(TEXT, false, false);
const defaultedImage = fromColumn(IMAGE, false, false);
/** Wirewatch derives it; no column gives it. */
const derived = withoutColumn(false);
/** Null in this version of the API. */
const unknown = withoutColumn(true);

/** With the types of its entries; {@link FIELDS} without. */
export const FIELD_TABLE = [
  derived('id', 'string', 'Stable, opaque id of the detection.'),
  derived('version', 'integer', 'Version of the detection: 1 on first sight, plus 1 on each visible change.'),
  derived('event', 'string', 'On the change stream only: created (version 1) or updated.'),
  derived('content_type', 'string', 'Type of the item: text (a wire story) or image (a photo).'),
  derived(
    'match_type',
    'string',
    'How the match was made: sentence_fingerprint for text, image_fingerprint for images.',
  ),
  required('subscription_id', ID, 'The subscription that the detection belongs to.'),
  required('first_detected_at', BOUNDED_TIME, 'When the service first received the match.'),
  defaulted(
    'first_detected_estimated',
    BOOLEAN,
    'True when first_detected_at is an estimate, as in a backfill.',
  ),
  required(
    'last_scored_at',
    { type: 'timestamp', bound: 'latest' },
    'When the match was last scored. Scoring again with no other change updates it in place, without a new version or a change-stream row.',
  ),
  defaulted(
    'exported_at',
    TIMESTAMP,
    'When the export row was written. Updated in place together with last_scored_at.',
  ),
  optional(
    'source.id',
    { type: 'string', characters_max: SOURCE_ID_CHARACTERS_MAX },
    "The agency's own id for the item: a URN, a NewsML id or a UUID.",
  ),
  required('source.internal_id', NUMBER, "The number of the item in the agency's matching system."),
  optional('source.published_at', TIMESTAMP, 'When the agency published the item.'),
  optionalText('source.language', STRING, 'Language of the wire story.'),
  optionalText('source.syndicated', BOOLEAN, 'Whether the wire story is syndicated.'),
  optionalText(
    'source.sentences',
    NUMBER,
    'Number of sentences in the wire story. Null until the export supplies it.',
  ),
  defaultedImage(
    'source.image_url',
    ADDRESS,
    "Permanent URL of the agency's full-size photo. It works for anyone who holds it.",
  ),
  optionalImage('source.origin_url', ADDRESS, "Where the agency's photo came from."),
  required(
    'strength.score',
    SCORE,
    'Text: percentage of the wire story that was used, 0 to 100. Images: score from 0 to 99.',
  ),
  derived(
    'strength.band',
    'string',
    'Text: off, low (from 25 percent), medium (50), high (75) or max (95). Images: low, medium (from 30) or high (60).',
  ),
  optionalText(
    'strength.matched_sentences',
    NUMBER,
    'Estimated number of sentences of the wire story found in the article.',
  ),
  optionalText('strength.article_sentences', NUMBER, 'Number of sentences in the article.'),
  required('article.id', NUMBER, "The article's id."),
  optional(
    'article.url',
    ADDRESS,
    'Canonical URL of the article. For print articles, null unless the account has `--print-metadata on`.',
  ),
  optional('article.domain', STRING, 'Registrable domain on which the article appeared.'),
  optional('article.published_at', TIMESTAMP, 'When the article was published. Often unknown (null).'),
  optional('article.headline', STRING, "The article's headline. Null until the export supplies it."),
  optional('article.publisher.id', ID, 'Publisher id. When it is unknown, article.publisher is null.'),
  optional('article.publisher.name', { type: 'string', trimmed: true }, 'Name of the publisher.'),
  defaultedText('article.print', BOOLEAN, 'Whether the publisher is a print title.'),
  optionalImage('article.image_url', ADDRESS, "URL of the publisher's copy of the photo."),
  unknown(
    'customer',
    'boolean',
    "Whether the publisher is on the subscription's customer list. Null in this version.",
  ),
  unknown('classification', 'string', 'licensed, potentially_unlicensed or unknown. Null in this version.'),
] as const;

export const FIELDS: readonly Field[] = FIELD_TABLE;

/** The machine-readable description of a detection: every field in its order, with its column in files and its position. */
export function schemaFields() {
  return FIELDS.map(({ path, type, nullable, content_types, description }, index) => {
    return { path, column: columnOf(path), position: index + 1, type, nullable, content_types, description };
  });
}

/** Members that hold fields and may be asked for whole. */
export const OBJECT_PATHS = ['source', 'strength', 'article', 'article.publisher'] as const;

/** Objects that are null as a whole where their `id` is unknown. */
export const NULLABLE_OBJECTS = ['article.publisher'] as const;
type NullableObject = (typeof NULLABLE_OBJECTS)[number];

type Column<Path extends string> = Path extends `${infer Head}.${infer Rest}`
  ? `${Head}_${Column<Rest>}`
  : Path;

/** The flat column of a field in files: dots become underscores. */
export function columnOf<Path extends string>(path: Path): Column<Path>;
export function columnOf(path: string): string {
  return path.replaceAll('.', '_');
}

type Entry = (typeof FIELD_TABLE)[number];
type ValueOfType = { string: string; timestamp: string; integer: number; number: number; boolean: boolean };
type TypeOf<F extends Entry> = F['column'] extends { readonly kind: infer Kind extends ColumnKind }
  ? (typeof TYPE_OF_KIND)[Kind['type']]
  : F['type'];
type ValueOf<F extends Entry> = ValueOfType[TypeOf<F>] | (F['nullable'] extends true ? null : never);

/** One row of an export, checked: column names as in files, times as the API writes them. */
export type ExportRow = {
  [F in Extract<Entry, { readonly column: object }> as F['column']['name']]:
    | ValueOf<F>
    // A row has the default of a defaulted field where it is a constant.
    | (F['column']['required'] extends true ? never : TypeOf<F> extends 'boolean' ? never : null);
};

type Within<Prefix extends string> = Extract<Entry, { readonly path: `${Prefix}${string}` }>;
type NamesOf<F extends Entry, Prefix extends string> = F['path'] extends `${Prefix}${infer Rest}`
  ? Rest extends `${infer Name}.${string}`
    ? Name
    : Rest
  : never;
type OfAll = Extract<Entry, { readonly content_types: typeof BOTH }>;
type MemberAt<Path extends string> = [Extract<Entry, { readonly path: Path }>] extends [never]
  ? ObjectAt<`${Path}.`> | (Path extends NullableObject ? null : never)
  : ValueOf<Extract<Entry, { readonly path: Path }>>;
type ObjectAt<Prefix extends string> = {
  [Name in NamesOf<Extract<Within<Prefix>, OfAll>, Prefix>]: MemberAt<`${Prefix}${Name}`>;
} & {
  [Name in NamesOf<Exclude<Within<Prefix>, OfAll>, Prefix>]?: MemberAt<`${Prefix}${Name}`>;
};

/** The JSON of a detection; a member that the content type lacks is absent. */
export type DetectionMembers = ObjectAt<''>;

/** A row that states nothing: a value of its type where the row must give one. */
export const EMPTY_ROW = Object.fromEntries(
  FIELD_TABLE.flatMap((field) => (field.column === null ? [] : [[field.column.name, emptyValue(field)]])),
) as ExportRow;

function emptyValue({ type, nullable, column }: Field): string | number | boolean | null {
  if (type === 'boolean') return nullable ? null : false;
  if (column?.required !== true) return null;
  return type === 'timestamp' ? '' : 0;
}

function fromColumn<
  const Types extends readonly ContentType[],
  const Nullable extends boolean,
  const Required extends boolean,
>(content_types: Types, nullable: Nullable, isRequired: Required) {
  return <const Path extends string, const Kind extends ColumnKind>(
    path: Path,
    kind: Kind,
    description: string,
  ) => {
    const column = { name: columnOf(path), kind, required: isRequired } as const;
    return { path, type: TYPE_OF_KIND[kind.type], nullable, content_types, description, column } as const;
  };
}

function withoutColumn<const Nullable extends boolean>(nullable: Nullable) {
  return <const Path extends string, const Type extends FieldType>(
    path: Path,
    type: Type,
    description: string,
  ) => ({ path, type, nullable, content_types: BOTH, description, column: null }) as const;
}
