/**
 * The rows of sample export files: invented detections in the export format, reproducible from a seed.
 *
 * A row depends only on the seed, the export, its window's number and its slot's, so any window can be drawn alone, and
 * windows of different runs fit together. About a tenth of the slots repeat the detection that the same slot reported some
 * windows before: they draw it as it was in that window, and change it by the time that has passed.
 */
import { SCALES } from '../../detection/band.ts';
import {
  CONTENT_TYPE_OF_EXPORT,
  type ContentType,
  type ExportName,
  perContentType,
  TYPE_RULES,
} from '../../detection/content-type.ts';
import type { ExportRow } from '../../detection/fields.ts';
import { formatSeconds, SECOND_MS, WINDOW_MS } from '../../time.ts';
import { createDraws, type Draws, type Prng } from './prng.ts';
import { anyPublisher, headline, type Publisher, SITES, SLUGS } from './words.ts';

/** An export may omit these two; the checked row has them always. */
type Columns = Omit<ExportRow, 'first_detected_estimated' | 'article_print'> & {
  first_detected_estimated: boolean | null;
  article_print: boolean | null;
};
export type SampleRow = ReturnType<typeof rowOf>;

/** A subscription with rows, and its content types. */
export type SampleSubscription = { id: number; content_types: readonly ContentType[] };

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

/** A window's number and one below this make an id of 15 digits, which grows with the windows. */
export const ROWS_MAX = 100_000_000;
/** Rows go back some hours before their window, and no detection may be older than 2000. */
export const EARLIEST_START_MS = Date.UTC(2000, 1, 1);
export const LATEST_START_MS = Date.UTC(2100, 0, 1);

const WINDOW_SECONDS = WINDOW_MS / SECOND_MS;
/** How many windows a report goes back at most in one step. If that window is a repetition itself, it goes on. */
const REPEAT_DISTANCE_MAX = 24;
const REPEATED_SHARE = 0.1;
/** What changes when a detection is reported again; `steady`: nothing. */
const FATES = 'steady steady score score headline'.split(' ');
/** A block of slots has a few items, each of which is found for half a day. */
const BLOCK_SLOTS = 16;
const BLOCK_ITEMS = 8;
const ITEM_AGE_WINDOWS_MAX = 72;
/** Scores cover all bands, with their exact thresholds and what rounding would lift over them. */
const EXACT = perContentType((type) => [
  ...[0, TYPE_RULES[type].score_max],
  ...SCALES[type].thresholds.flatMap((at) => [at, at - 0.01]),
]);
/** The invented agency of `demo` and `lab`; sample files are written for its subscriptions. */
export const SAMPLE_ACCOUNT = { id: 'sample-agency', name: 'Sample News Agency' } as const;
export const SAMPLE_SUBSCRIPTIONS = [
  { id: 7001, name: 'Daily monitoring', time_zone: 'Europe/Berlin', content_types: ['text', 'image'] },
  { id: 7002, name: 'Overseas monitoring', time_zone: 'America/New_York', content_types: ['text', 'image'] },
] as const;
const SAMPLE_HOST = 'sample-agency.example';
const HOST_PREFIXES = ['www.', 'www.', '', 'm.', 'amp.regional.'];
// The last is forbidden by RFC 3986, but common: a reader must encode it.
const QUERIES = [
  '',
  '',
  '?utm_source=feed&utm_medium=rss',
  '?id=%C3%A4%C3%B6&page=2#comments',
  '?tags=kite|bridge',
];

/**
 * The rows of one window's file, or of a backfill: `rows` rows in total, spread evenly over `windows` windows. They are
 * the first rows of the files of those windows, so history and windows of one seed agree. Their columns are in the order
 * of the export format.
 */
export function* exportRows(options: RowsOptions): Generator<SampleRow, void, undefined> {
  const { seed, exportName, windowStartMs, rows, subscriptions, windows = 1 } = options;
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];
  const watching = subscriptions.filter(({ content_types }) => content_types.includes(contentType));
  if (watching.length === 0) return;
  const draw = createDraws(`${contentType} ${seed}`);
  const ids = watching.map(({ id }) => id);
  const firstWindow = windowStartMs / WINDOW_MS;
  for (let window = 0; window < windows; window += 1) {
    const slots = Math.floor((rows * (window + 1)) / windows) - Math.floor((rows * window) / windows);
    for (let slot = 0; slot < slots; slot += 1)
      yield rowOf(draw, contentType, ids, firstWindow + window, slot);
  }
}

/**
 * The row of a slot of a window. What is drawn for the origin is the same in every report of the detection; what is drawn
 * for the window belongs to this report.
 * @param ids of the subscriptions
 */
function rowOf(draw: Draws, contentType: ContentType, ids: readonly number[], window: number, slot: number) {
  const origin = originOf(draw, window, slot);
  const isNew = origin === window;
  const facts = draw('detection', origin, slot);
  const block = Math.floor(slot / BLOCK_SLOTS);
  const item = block * BLOCK_ITEMS + skewed(draw('item of slot', origin, slot), BLOCK_ITEMS);
  const source = sourceOf(draw, contentType, origin, item);
  const article = articleOf(draw, contentType, origin, slot);
  // Most detections of an item are for one subscription.
  const away = facts.chance(0.15) ? facts.below(ids.length) : 0;
  const fate = facts.pick(FATES);
  const estimated = facts.below(100);
  const otherSentences = 2 + facts.below(60);
  const firstScore = drawScore(facts, contentType);
  const foundSeconds = foundAt(draw, origin, slot);
  const endSeconds = (window + 1) * WINDOW_SECONDS;
  const report = draw('report', window, slot);
  const scoredSeconds = isNew
    ? foundSeconds + report.below(endSeconds - foundSeconds)
    : endSeconds - 1 - report.below(WINDOW_SECONDS);
  const isExportedAt = !report.chance(0.05);
  const score = fate === 'score' && !isNew ? drawScore(report, contentType) : firstScore;
  const matched = Math.round((source.sentences * score) / 100);
  return {
    subscription_id: ids[(source.home + away) % ids.length] ?? 0,
    source_internal_id: source.id,
    article_id: article.id,
    first_detected_at: formatSeconds(foundSeconds),
    last_scored_at: formatSeconds(scoredSeconds),
    strength_score: score,
    first_detected_estimated: estimated < 30 ? estimated < 2 : null,
    exported_at: isExportedAt ? formatSeconds(endSeconds + 2 + (window % 7)) : null,
    ...source.columns,
    ...(contentType === 'text' && {
      strength_matched_sentences: source.isCounted ? matched : null,
      strength_article_sentences: otherSentences > 55 ? null : otherSentences + matched,
    }),
    ...article.columns,
    // Some facts are added after the first report.
    ...(fate === 'headline' && isNew && { article_headline: null, article_published_at: null }),
  } satisfies Partial<Columns>;
}

/** The window in which the detection of a slot was new: the window itself, or an earlier one. */
function originOf(draw: Draws, window: number, slot: number): number {
  const isRepeated = (at: number) => draw('repeat', at, slot).chance(REPEATED_SHARE);
  if (!isRepeated(window)) return window;
  let origin = window - 1 - skewed(draw('repeat distance', window, slot), REPEAT_DISTANCE_MAX);
  while (isRepeated(origin)) origin -= 1;
  return origin;
}

/** When the article of a slot was first found, epoch seconds. */
const foundAt = (draw: Draws, window: number, slot: number): number =>
  window * WINDOW_SECONDS + draw('found', window, slot).below(WINDOW_SECONDS);

/**
 * One of the agency's own items, a wire story or photo, so drawn that all rows with an item agree.
 * @param window in which it is found; it was published before
 */
function sourceOf(draw: Draws, contentType: ContentType, window: number, number: number) {
  const isText = contentType === 'text';
  const kind = isText ? 'story' : 'photo';
  const published = window - 1 - skewed(draw('item age', window, number), ITEM_AGE_WINDOWS_MAX);
  const prng = draw('item', published, number);
  const publishedAt = formatSeconds(published * WINDOW_SECONDS + prng.below(WINDOW_SECONDS));
  const day = publishedAt.slice(0, 10).replaceAll('-', '');
  const id = numberedId(draw, 'item', published, number);
  const sentences = 3 + prng.below(prng.chance(0.1) ? 120 : 40);
  const isCounted = prng.chance(0.9);
  const columns = {
    source_id: prng.chance(0.04) ? null : `urn:newsml:${SAMPLE_HOST}:${day}:${kind}-${id}`,
    source_published_at: prng.chance(0.04) ? null : publishedAt,
    ...(isText
      ? {
          source_language: prng.chance(0.03) ? null : 'en',
          source_syndicated: prng.chance(0.1) ? null : prng.chance(0.3),
          source_sentences: isCounted ? sentences : null,
        }
      : {
          source_image_url: prng.chance(0.65)
            ? null
            : `https://photos.${SAMPLE_HOST}/full/${id}.jpg?signature=${prng.uint32().toString(16)}`,
          source_origin_url: prng.chance(0.2)
            ? null
            : `https://archive.${SAMPLE_HOST}/desk-${1 + prng.below(9)}/${prng.pick(SLUGS)}/${id}?size=full&v=2`,
        }),
  };
  // `home` selects the subscription of most of its detections.
  return { id, home: prng.uint32(), sentences, isCounted, columns };
}

/** A publisher's article in which items are found; it was published before it was found. */
function articleOf(draw: Draws, contentType: ContentType, window: number, slot: number) {
  const prng = draw('article', window, slot);
  const id = numberedId(draw, 'article', window, slot);
  const publisher = prng.chance(0.12) ? null : anyPublisher(prng);
  const print = contentType === 'text' && publisher?.print === true;
  const { url, domain, host } = addressOf(prng, publisher, print, id);
  const title = headline(prng);
  const publishedSeconds = foundAt(draw, window, slot) - prng.below(prng.chance(0.9) ? 5_400 : 400_000);
  // Some names have spaces around them, as in real databases.
  const name = prng.chance(0.03) ? ` ${publisher?.name}  ` : publisher?.name;
  const columns = {
    article_url: url,
    article_domain: domain,
    article_published_at: prng.chance(0.3) ? null : formatSeconds(publishedSeconds),
    article_headline: prng.chance(0.85) ? title : null,
    article_publisher_id: publisher?.id ?? null,
    article_publisher_name: publisher === null || prng.chance(0.02) ? null : (name ?? null),
    ...(contentType === 'text'
      ? { article_print: !print && prng.chance(0.2) ? null : print }
      : {
          article_image_url: prng.chance(0.15)
            ? null
            : `https://${host}/media/${id}/${prng.pick(SLUGS)}.webp?crop=16:9`,
        }),
  };
  return { id, columns };
}

function addressOf(prng: Prng, publisher: Publisher | null, print: boolean, id: number) {
  const registrable = publisher?.domain ?? prng.pick(SITES);
  const host = prng.pick(HOST_PREFIXES) + (publisher?.asciiDomain ?? registrable);
  const said = prng.below(100);
  if (said === 99 || (print && said < 40)) return { url: null, domain: said < 30 ? registrable : null, host };
  const domain = said < 60 ? registrable : null;
  return { url: `http${prng.chance(0.95) ? 's' : ''}://${host}${pathOf(prng, print, id)}`, domain, host };
}

function pathOf(prng: Prng, print: boolean, id: number): string {
  if (print) return `/epaper/${id}`;
  const query = prng.pick(QUERIES);
  // Many feeds do not encode letters outside ASCII.
  const folder = prng.chance(0.1) ? 'straße-ça-va/日本' : prng.pick(SLUGS);
  return `/${folder}/${prng.pick(SLUGS)}-${id}.html${query}`;
}

function drawScore(prng: Prng, contentType: ContentType): number {
  const kind = prng.below(100);
  if (kind < 10) return prng.pick(EXACT[contentType]);
  const steps = kind < 50 ? 1 : 100;
  return Math.round(prng.unit() * TYPE_RULES[contentType].score_max * steps) / steps;
}

/** Grows with the windows; the seed decides where the numbers of a window begin. */
const numberedId = (draw: Draws, purpose: string, window: number, number: number): number =>
  window * ROWS_MAX + ((draw(`${purpose} ids`, 0, 0).below(ROWS_MAX) + number) % ROWS_MAX);

/** From 0 to `count` - 1, mostly low: most matches concern the few latest and biggest items. */
const skewed = (prng: Prng, count: number) => Math.floor(prng.unit() ** 2 * count);
