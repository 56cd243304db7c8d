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
    'Version of the detection: 1 on first sight, plus 1 on each visible change.',
  ),
  field('event', 'string', BOTH, 'On the change stream only: created (version 1) or updated.'),
  field('content_type', 'string', BOTH, 'Type of the item: text (a wire story) or image (a photo).'),
  field(
    'match_type',
    'string',
    BOTH,
    'How the match was made: sentence_fingerprint for text, image_fingerprint for images.',
  ),
  field('subscription_id', 'integer', BOTH, 'The subscription that the detection belongs to.'),
  field('first_detected_at', 'timestamp', BOTH, 'When the service first received the match.'),
  field(
    'first_detected_estimated',
    'boolean',
    BOTH,
    'True when first_detected_at is an estimate, as in a backfill.',
  ),
  field(
    'last_scored_at',
    'timestamp',
    BOTH,
    'When the match was last scored. Scoring again with no other change updates it in place, without a new version or a change-stream row.',
  ),
  field(
    'exported_at',
    'timestamp',
    BOTH,
    'When the export row was written. Updated in place together with last_scored_at.',
  ),
  nullable('source.id', 'string', BOTH, "The agency's own id for the item: a URN, a NewsML id or a UUID."),
  field('source.internal_id', 'integer', BOTH, "The number of the item in the agency's matching system."),
  nullable('source.published_at', 'timestamp', BOTH, 'When the agency published the item.'),
  nullable('source.language', 'string', TEXT, 'Language of the wire story.'),
  nullable('source.syndicated', 'boolean', TEXT, 'Whether the wire story is syndicated.'),
  nullable(
    'source.sentences',
    'integer',
    TEXT,
    'Number of sentences in the wire story. Null until the export supplies it.',
  ),
  field(
    'source.image_url',
    'string',
    IMAGE,
    "Permanent URL of the agency's full-size photo. It works for anyone who holds it.",
  ),
  nullable('source.origin_url', 'string', IMAGE, "Where the agency's photo came from."),
  field(
    'strength.score',
    'number',
    BOTH,
    'Text: percentage of the wire story that was used, 0 to 100. Images: score from 0 to 99.',
  ),
  field(
    'strength.band',
    'string',
    BOTH,
    'Text: off, low (from 25 percent), medium (50), high (75) or max (95). Images: low, medium (from 30) or high (60).',
  ),
  nullable(
    'strength.matched_sentences',
    'integer',
    TEXT,
    'Estimated number of sentences of the wire story found in the article.',
  ),
  nullable('strength.article_sentences', 'integer', TEXT, 'Number of sentences in the article.'),
  field('article.id', 'integer', BOTH, "The article's id."),
  nullable(
    'article.url',
    'string',
    BOTH,
    'Canonical URL of the article. For print articles, null unless the account has `--print-metadata on`.',
  ),
  nullable('article.domain', 'string', BOTH, 'Registrable domain on which the article appeared.'),
  nullable(
    'article.published_at',
    'timestamp',
    BOTH,
    'When the article was published. Often unknown (null).',
  ),
  nullable('article.headline', 'string', BOTH, "The article's headline. Null until the export supplies it."),
  nullable(
    'article.publisher.id',
    'integer',
    BOTH,
    'Publisher id. When it is unknown, article.publisher is null.',
  ),
  nullable('article.publisher.name', 'string', BOTH, 'Name of the publisher.'),
  field('article.print', 'boolean', TEXT, 'Whether the publisher is a print title.'),
  nullable('article.image_url', 'string', IMAGE, "URL of the publisher's copy of the photo."),
  nullable(
    'customer',
    'boolean',
    BOTH,
    "Whether the publisher is on the subscription's customer list. Null in this version.",
  ),
  nullable(
    'classification',
    'string',
    BOTH,
    'licensed, potentially_unlicensed or unknown. Null in this version.',
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
