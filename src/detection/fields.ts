/**
 * The field table: every field of a detection, once, in the contract's order (contract: Detection).
 *
 * The order of rendering, `fields` and its projection, the schema endpoint and the columns of export files are
 * all taken from here.
 */
import { CONTENT_TYPES, type ContentType } from './content-type.ts';

export type FieldType = 'string' | 'integer' | 'number' | 'boolean' | 'timestamp';

export interface Field {
  /** Dotted path in the JSON detection. */
  readonly path: string;
  readonly type: FieldType;
  readonly nullable: boolean;
  readonly content_types: readonly ContentType[];
  readonly description: string;
}

const BOTH = CONTENT_TYPES;
const TEXT = ['text'] as const;
const IMAGE = ['image'] as const;

export const FIELDS: readonly Field[] = [
  field('id', 'string', BOTH, 'Stable, opaque id of the detection.'),
  field(
    'version',
    'integer',
    BOTH,
    'Version of the detection: 1 on first sight, one more with each visible change.',
  ),
  field('event', 'string', BOTH, 'On the change stream only: created (version 1) or updated.'),
  field('content_type', 'string', BOTH, 'What was found: text (a wire story) or image (a photo).'),
  field(
    'match_type',
    'string',
    BOTH,
    'How it was found: sentence_fingerprint for text, image_fingerprint for images.',
  ),
  field('subscription_id', 'integer', BOTH, 'The subscription that the detection belongs to.'),
  field('first_detected_at', 'timestamp', BOTH, 'When the match first reached the service.'),
  field(
    'first_detected_estimated',
    'boolean',
    BOTH,
    'True when first_detected_at is an estimate, as for backfilled history.',
  ),
  field(
    'last_scored_at',
    'timestamp',
    BOTH,
    'When the match was last scored. A new score that changes nothing else alters it in place: no new version, nothing on the stream.',
  ),
  field(
    'exported_at',
    'timestamp',
    BOTH,
    'When the row that the detection was read from was written. It is altered in place as last_scored_at is.',
  ),
  nullable('source.id', 'string', BOTH, "The agency's own id of the item: a URN, a NewsML id or a UUID."),
  field('source.internal_id', 'integer', BOTH, "The service's id of the item."),
  nullable(
    'source.published_at',
    'timestamp',
    BOTH,
    'When the agency published the item; for photos the real publish time.',
  ),
  nullable('source.language', 'string', TEXT, 'Language of the wire story.'),
  nullable('source.syndicated', 'boolean', TEXT, 'Whether the wire story is syndicated.'),
  nullable('source.sentences', 'integer', TEXT, 'Number of sentences of the wire story, once exported.'),
  field(
    'source.image_url',
    'string',
    IMAGE,
    "Permanent address of the agency's full-size photo; it works for anyone who holds it.",
  ),
  nullable('source.origin_url', 'string', IMAGE, "Where the agency's photo came from."),
  field(
    'strength.score',
    'number',
    BOTH,
    'Text: share of the wire story that was used, in percent, 0 to 100. Images: score, 0 to 99.',
  ),
  field(
    'strength.band',
    'string',
    BOTH,
    'Text: off, low, medium, high or max, from 25, 50, 75 and 95 percent on. Images: low, medium or high, from 30 and 60 on.',
  ),
  nullable(
    'strength.matched_sentences',
    'integer',
    TEXT,
    'Estimated number of sentences of the wire story that were found.',
  ),
  nullable('strength.article_sentences', 'integer', TEXT, 'Number of sentences of the article.'),
  field('article.id', 'integer', BOTH, "The article's id."),
  nullable(
    'article.url',
    'string',
    BOTH,
    'Canonical address of the article; null for print articles, except for agencies with the print-metadata licence.',
  ),
  nullable('article.domain', 'string', BOTH, 'Registrable domain on which the article appeared.'),
  nullable('article.published_at', 'timestamp', BOTH, 'When the article was published; often unknown.'),
  nullable('article.headline', 'string', BOTH, "The article's headline, once exported."),
  nullable(
    'article.publisher.id',
    'integer',
    BOTH,
    'Id of the publisher; article.publisher is null where it is unknown.',
  ),
  nullable('article.publisher.name', 'string', BOTH, 'Name of the publisher.'),
  field('article.print', 'boolean', TEXT, 'Whether the publisher is a print title.'),
  nullable('article.image_url', 'string', IMAGE, "Address of the publisher's copy of the photo."),
  nullable(
    'customer',
    'boolean',
    BOTH,
    "Whether the publisher is on the subscription's customer list; null in this version.",
  ),
  nullable(
    'classification',
    'string',
    BOTH,
    'licensed, potentially_unlicensed or unknown; null in this version.',
  ),
];

/** Members that hold fields and may be asked for whole (contract: `fields`). */
export const OBJECT_PATHS = ['source', 'strength', 'article', 'article.publisher'] as const;

/** The flat column of a field in files: dots become underscores. */
export function columnOf(path: string): string {
  return path.replaceAll('.', '_');
}

function field(
  path: string,
  type: FieldType,
  contentTypes: readonly ContentType[],
  description: string,
): Field {
  return { path, type, nullable: false, content_types: contentTypes, description };
}

function nullable(
  path: string,
  type: FieldType,
  contentTypes: readonly ContentType[],
  description: string,
): Field {
  return { ...field(path, type, contentTypes, description), nullable: true };
}
