/**
 * A match as a detection shows it: everything but `id`, `version` and `event` (contract: Detection).
 *
 * A match is rendered once, when its row is read from an export, and kept as text; `id`, `version` and `event`
 * are put before it when it is stored. So serving a page copies bytes and renders nothing.
 */
import { BANDS, bandStep } from './band.ts';
import { type ContentType, MATCH_TYPES } from './content-type.ts';

/**
 * Stands in stored text where the base address is put in when a row is read. JSON text has no such character
 * (it would be escaped), so nothing that an export carries can be mistaken for it.
 */
export const BASE_URL_MARK = '\u0001';

const OWN_ADDRESS_RENDERED = '"image_url":"\\u0001/';
const OWN_ADDRESS_STORED = `"image_url":"${BASE_URL_MARK}/`;

/** One row of an export, checked: column names as in files, times as the contract writes them. */
export interface ExportRow {
  subscription_id: number;
  source_internal_id: number;
  article_id: number;
  first_detected_at: string;
  last_scored_at: string;
  strength_score: number;
  first_detected_estimated: boolean;
  exported_at: string | null;
  source_id: string | null;
  source_published_at: string | null;
  source_language: string | null;
  source_syndicated: boolean | null;
  source_sentences: number | null;
  source_image_url: string | null;
  source_origin_url: string | null;
  strength_matched_sentences: number | null;
  strength_article_sentences: number | null;
  article_url: string | null;
  article_domain: string | null;
  article_published_at: string | null;
  article_headline: string | null;
  article_publisher_id: number | null;
  article_publisher_name: string | null;
  article_print: boolean;
  article_image_url: string | null;
}

/** Members in the contract's order; a member that the content type lacks is absent. */
export interface Match {
  content_type: ContentType;
  match_type: string;
  subscription_id: number;
  first_detected_at: string;
  first_detected_estimated: boolean;
  last_scored_at: string;
  exported_at: string;
  source: {
    id: string | null;
    internal_id: number;
    published_at: string | null;
    language?: string | null;
    syndicated?: boolean | null;
    sentences?: number | null;
    image_url?: string;
    origin_url?: string | null;
  };
  strength: {
    score: number;
    band: string;
    matched_sentences?: number | null;
    article_sentences?: number | null;
  };
  article: {
    id: number;
    url: string | null;
    domain: string | null;
    published_at: string | null;
    headline: string | null;
    publisher: { id: number; name: string | null } | null;
    print?: boolean;
    image_url?: string | null;
  };
  customer: null;
  classification: null;
}

export interface MatchOptions {
  /** Stands for `exported_at` where the row gives none: when the row was ingested. */
  readonly exportedAtDefault: string;
  /** The path and signature of the appliance's own address of a photo, from `/` on. */
  readonly photoPath: (sourceInternalId: number) => string;
}

/** Builds the match that a checked row of an export states; `article.url` is as exported, licence or not. */
export function matchOf(contentType: ContentType, row: ExportRow, options: MatchOptions): Match {
  return contentType === 'text' ? textMatch(row, options) : imageMatch(row, options);
}

/** Renders a match for storage: JSON text without its opening brace, the base address replaced by its mark. */
export function renderMatch(match: Match): string {
  const json = JSON.stringify(match);
  const text = match.content_type === 'image' ? json.replace(OWN_ADDRESS_RENDERED, OWN_ADDRESS_STORED) : json;
  return text.slice(1);
}

/** Reads what {@link renderMatch} gave. */
export function readMatch(rendered: string): Match {
  return JSON.parse(`{${rendered.replace(OWN_ADDRESS_STORED, OWN_ADDRESS_RENDERED)}`);
}

/** What filters judge, beside the text: the columns of a stored row. */
export interface JudgedColumns {
  readonly publisher_id: number | null;
  readonly domain: string | null;
  /** See `bandStep`. */
  readonly band: number;
  readonly score: number;
  readonly print: number;
  readonly source_id: string | null;
  readonly article_id: number;
}

export function judgedColumns(match: Match): JudgedColumns {
  return {
    publisher_id: match.article.publisher?.id ?? null,
    domain: match.article.domain,
    band: bandStep(match.content_type, match.strength.score),
    score: match.strength.score,
    print: match.article.print === true ? 1 : 0,
    source_id: match.source.id,
    article_id: match.article.id,
  };
}

/** A detection as the period and id endpoints show it, from its rendered match. */
export function renderDetection(id: string, version: number, rendered: string): string {
  return `{"id":"${id}","version":${version},${rendered}`;
}

/** A version of a detection as the change stream shows it, from its rendered match. */
export function renderStreamRow(id: string, version: number, rendered: string): string {
  return `{"id":"${id}","version":${version},"event":"${version === 1 ? 'created' : 'updated'}",${rendered}`;
}

const EVENT_CHARACTERS = '"event":"created",'.length;

/** What {@link renderDetection} would give, from what {@link renderStreamRow} gave. */
export function withoutEvent(streamRow: string): string {
  // A quotation mark within a value is escaped: this is the member.
  const at = streamRow.indexOf('"event":"');
  return at < 0 ? streamRow : streamRow.slice(0, at) + streamRow.slice(at + EVENT_CHARACTERS);
}

/** The rendered match within what {@link renderDetection} or {@link renderStreamRow} gave. */
export function renderedMatchOf(body: string): string {
  return body.slice(body.indexOf('"content_type":'));
}

function textMatch(row: ExportRow, { exportedAtDefault }: MatchOptions): Match {
  return {
    content_type: 'text',
    match_type: MATCH_TYPES.text,
    subscription_id: row.subscription_id,
    first_detected_at: row.first_detected_at,
    first_detected_estimated: row.first_detected_estimated,
    last_scored_at: row.last_scored_at,
    exported_at: row.exported_at ?? exportedAtDefault,
    source: {
      id: row.source_id,
      internal_id: row.source_internal_id,
      published_at: row.source_published_at,
      language: row.source_language,
      syndicated: row.source_syndicated,
      sentences: row.source_sentences,
    },
    strength: {
      score: row.strength_score,
      band: BANDS[bandStep('text', row.strength_score)] ?? 'off',
      matched_sentences: row.strength_matched_sentences,
      article_sentences: row.strength_article_sentences,
    },
    article: {
      id: row.article_id,
      url: row.article_url,
      domain: row.article_domain,
      published_at: row.article_published_at,
      headline: row.article_headline,
      publisher: publisherOf(row),
      print: row.article_print,
    },
    customer: null,
    classification: null,
  };
}

function imageMatch(row: ExportRow, { exportedAtDefault, photoPath }: MatchOptions): Match {
  return {
    content_type: 'image',
    match_type: MATCH_TYPES.image,
    subscription_id: row.subscription_id,
    first_detected_at: row.first_detected_at,
    first_detected_estimated: row.first_detected_estimated,
    last_scored_at: row.last_scored_at,
    exported_at: row.exported_at ?? exportedAtDefault,
    source: {
      id: row.source_id,
      internal_id: row.source_internal_id,
      published_at: row.source_published_at,
      image_url: row.source_image_url ?? `${BASE_URL_MARK}${photoPath(row.source_internal_id)}`,
      origin_url: row.source_origin_url,
    },
    strength: {
      score: row.strength_score,
      band: BANDS[bandStep('image', row.strength_score)] ?? 'low',
    },
    article: {
      id: row.article_id,
      url: row.article_url,
      domain: row.article_domain,
      published_at: row.article_published_at,
      headline: row.article_headline,
      publisher: publisherOf(row),
      image_url: row.article_image_url,
    },
    customer: null,
    classification: null,
  };
}

function publisherOf(row: ExportRow): { id: number; name: string | null } | null {
  return row.article_publisher_id === null
    ? null
    : { id: row.article_publisher_id, name: row.article_publisher_name };
}
