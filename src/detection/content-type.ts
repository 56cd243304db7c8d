/** The content types (text, image), the export that reports each, and the names of streams. */

export const CONTENT_TYPES = ['text', 'image'] as const;
export type ContentType = (typeof CONTENT_TYPES)[number];

export const EXPORT_NAMES = ['newswire', 'imagewire'] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

export const CONTENT_TYPE_OF_EXPORT: Readonly<Record<ExportName, ContentType>> = {
  newswire: 'text',
  imagewire: 'image',
};

/** What differs from one content type to the other; its bands are in band.ts, its fields in fields.ts. */
interface TypeRules {
  readonly export: ExportName;
  readonly match_type: string;
  /** The first letter of an id. */
  readonly id_letter: string;
  /** The greatest `strength.score`. */
  readonly score_max: number;
  /** Whether `source.image_url` may be an address of the appliance itself. */
  readonly has_own_address: boolean;
}

export const TYPE_RULES: Readonly<Record<ContentType, TypeRules>> = {
  text: {
    export: 'newswire',
    match_type: 'sentence_fingerprint',
    id_letter: 't',
    score_max: 100,
    has_own_address: false,
  },
  image: {
    export: 'imagewire',
    match_type: 'image_fingerprint',
    id_letter: 'i',
    score_max: 99,
    has_own_address: true,
  },
};

export const isContentType = (value: string): value is ContentType =>
  (CONTENT_TYPES as readonly string[]).includes(value);

export const isExportName = (value: string): value is ExportName =>
  (EXPORT_NAMES as readonly string[]).includes(value);

export function perContentType<Value>(make: (contentType: ContentType) => Value): Record<ContentType, Value> {
  return recordOf(CONTENT_TYPES, make);
}

export const perExport = <Value>(make: (name: ExportName) => Value) => recordOf(EXPORT_NAMES, make);

const recordOf = <Name extends string, Value>(names: readonly Name[], make: (name: Name) => Value) =>
  Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>;

/** The greatest subscription, publisher or article number (999,999,999,999,999). */
export const NUMBER_MAX = 999_999_999_999_999;

/** A stream, one subscription's detections of one content type: `7001:text`. */
export type StreamName = `${number}:${ContentType}`;

export const streamName = (subscriptionId: number, contentType: ContentType): StreamName =>
  `${subscriptionId}:${contentType}`;

/** The reverse of {@link streamName}. */
export function streamParts(stream: StreamName): { subscription_id: number; content_type: ContentType } {
  const [id, type = ''] = stream.split(':');
  if (!isContentType(type)) throw new Error(`${stream} names no stream`);
  return { subscription_id: Number(id), content_type: type };
}
