/** The rows of sample export files: invented detections in the export format, reproducible from a seed. */
import { CONTENT_TYPE_OF_EXPORT, type ContentType, type ExportName } from '../detection/content-type.ts';
import type { ExportRow } from '../detection/fields.ts';
import { WINDOW_MS } from '../time.ts';
import type { Article } from './articles.ts';
import { createReportMaker, type Report } from './reports.ts';
import { SLOTS_MAX } from './sources.ts';

/** An export may omit these two; the checked row has them always. */
type Columns = Omit<ExportRow, 'first_detected_estimated' | 'article_print'> & {
  first_detected_estimated: boolean | null;
  article_print: boolean | null;
};
export type SampleRow = ReturnType<typeof newswireRow> | ReturnType<typeof imagewireRow>;

/** A subscription with rows, and its content types. */
export type SampleSubscription = { id: number; contentTypes: readonly ContentType[] };

export type RowsOptions = {
  /** Any text; equal seeds give equal rows. */
  seed: string;
  exportName: ExportName;
  /** Epoch milliseconds, a multiple of ten minutes, between {@link EARLIEST_START_MS} and {@link LATEST_START_MS}. */
  windowStartMs: number;
  /** 0 to {@link ROWS_MAX} in a window; none if no subscription has the export's content type. */
  rows: number;
  subscriptions: readonly SampleSubscription[];
  /** Default: 1. */
  windows?: number;
};

export const ROWS_MAX = SLOTS_MAX;
/** Rows go back some hours before their window, and no detection may be older than 2000. */
export const EARLIEST_START_MS = Date.UTC(2000, 1, 1);
export const LATEST_START_MS = Date.UTC(2100, 0, 1);

/**
 * The rows of one window's file, or of a backfill: `rows` rows in total, spread evenly over `windows` windows. They are
 * the first rows of the files of those windows, so history and windows of one seed agree. Their columns are in the order
 * of the export format.
 */
export function* exportRows(options: RowsOptions): Generator<SampleRow, void, undefined> {
  const { seed, exportName, rows, windows = 1 } = options;
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];
  const watching = options.subscriptions.filter(({ contentTypes }) => contentTypes.includes(contentType));
  if (watching.length === 0) return;
  const ids = watching.map(({ id }) => id);
  const report = createReportMaker(seed, exportName, ids);
  const toRow = exportName === 'newswire' ? newswireRow : imagewireRow;
  const firstWindow = options.windowStartMs / WINDOW_MS;
  for (let window = 0; window < windows; window += 1) {
    const slots = Math.floor((rows * (window + 1)) / windows) - Math.floor((rows * window) / windows);
    for (let slot = 0; slot < slots; slot += 1) yield toRow(report(firstWindow + window, slot));
  }
}

function newswireRow(report: Report) {
  const { source, article } = report;
  const matched = Math.round((source.sentencesCounted * report.score) / 100);
  return {
    ...sourceColumns(report),
    source_language: source.language,
    source_syndicated: source.syndicated,
    source_sentences: source.sentences,
    strength_matched_sentences: source.sentences === null ? null : matched,
    strength_article_sentences: article.sentences > 55 ? null : article.sentences + matched,
    ...articleColumns(article),
    article_print: article.print,
  } satisfies Partial<Columns>;
}

function imagewireRow(report: Report) {
  const { source, article } = report;
  return {
    ...sourceColumns(report),
    source_image_url: source.imageUrl,
    source_origin_url: source.originUrl,
    ...articleColumns(article),
    article_image_url: article.imageUrl,
  } satisfies Partial<Columns>;
}

/** The first columns of both exports. */
function sourceColumns(report: Report) {
  const { source, article } = report;
  return {
    subscription_id: report.subscriptionId,
    source_internal_id: source.internalId,
    article_id: article.id,
    first_detected_at: report.firstDetectedAt,
    last_scored_at: report.lastScoredAt,
    strength_score: report.score,
    first_detected_estimated: report.estimated,
    exported_at: report.exportedAt,
    source_id: source.id,
    source_published_at: source.publishedAt,
  };
}

function articleColumns(article: Article) {
  return {
    article_url: article.url,
    article_domain: article.domain,
    article_published_at: article.publishedAt,
    article_headline: article.headline,
    article_publisher_id: article.publisherId,
    article_publisher_name: article.publisherName,
  };
}
