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
import { createPrng, hash32, type Prng, type SeedKey, seedKey } from './prng.ts';
import { headline, type Language, type Publisher, publishers, SITES, slug } from './words.ts';

/** An export may omit these two; the checked row has them always. */
type Columns = Omit<ExportRow, 'first_detected_estimated' | 'article_print'> & {
  first_detected_estimated: boolean | null;
  article_print: boolean | null;
};
export type SampleRow = ReturnType<ReturnType<typeof createRowMaker>>;

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

/** A window's number and one below this make an id of 15 digits, which grows with the windows. */
export const ROWS_MAX = 100_000_000;
/** Rows go back some hours before their window, and no detection may be older than 2000. */
export const EARLIEST_START_MS = Date.UTC(2000, 1, 1);
export const LATEST_START_MS = Date.UTC(2100, 0, 1);

const WINDOW_SECONDS = WINDOW_MS / SECOND_MS;
/** How many windows a report goes back at most in one step. If that window is a repetition itself, it goes on. */
const REPEAT_DISTANCE_MAX = 24;
const REPEATED_SHARE = 0.1 * 2 ** 32;
/** What changes when a detection is reported again; `steady`: nothing. */
const FATES = 'steady steady steady score score score publisher headline corrected earlier'.split(' ');
/** A block of slots has one language and a few items, each of which is found for half a day. */
const BLOCK_SLOTS = 16;
const BLOCK_ITEMS = 8;
const ITEM_AGE_WINDOWS_MAX = 72;
const LANGUAGES: readonly Language[] = ['en', 'en', 'en', 'de', 'de', 'ar', 'ja'];
/** Scores cover all bands, with their exact thresholds and what rounding would lift over them. */
const EXACT = perContentType((type) => [0, ...SCALES[type].thresholds, TYPE_RULES[type].score_max]);
const CLOSE = perContentType((type) => [
  0.1,
  ...SCALES[type].thresholds.flatMap((at) => [at - 0.01, at - 0.5]),
]);
/** The invented agency of `demo` and `lab`; sample files are written for its subscriptions. */
export const SAMPLE_ACCOUNT = { id: 'sample-agency', name: 'Sample News Agency' } as const;
export const SAMPLE_SUBSCRIPTIONS = [
  { id: 7001, name: 'Daily monitoring', timeZone: 'Europe/Berlin', contentTypes: ['text', 'image'] },
  { id: 7002, name: 'Overseas monitoring', timeZone: 'America/New_York', contentTypes: ['text', 'image'] },
] as const;
const SAMPLE_HOST = 'sample-agency.example';
const HOST_PREFIXES = ['www.', 'www.', '', 'm.', 'amp.regional.'];
const QUERIES = [
  '?utm_source=feed&utm_medium=rss',
  '?id=%C3%A4%C3%B6&page=2',
  '?ref=start#comments',
  '?redirect=https%3A%2F%2Fnews.sample-agency.example%2F',
  // Forbidden by RFC 3986, but common: a reader must encode it.
  '?tags=kite|bridge',
];

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
  const rowOf = createRowMaker(
    seed,
    contentType,
    watching.map(({ id }) => id),
  );
  const firstWindow = options.windowStartMs / WINDOW_MS;
  for (let window = 0; window < windows; window += 1) {
    const slots = Math.floor((rows * (window + 1)) / windows) - Math.floor((rows * window) / windows);
    for (let slot = 0; slot < slots; slot += 1) yield rowOf(firstWindow + window, slot);
  }
}

/** @param subscriptionIds at least one */
function createRowMaker(seed: string, contentType: ContentType, subscriptionIds: readonly number[]) {
  const prng = createPrng();
  const key = (purpose: string) => seedKey(seed, `${contentType} ${purpose}`);
  const originOf = createOriginFinder(key('repeat'), key('repeat distance'));
  const factsOf = createFactsMaker(prng, contentType, key('detection'), key('item of slot'));
  const sourceOf = createSourceMaker(prng, contentType, key('item'), key('item age'));
  const articleOf = createArticleMaker(prng, contentType, key('article'));
  const [reportKey, foundKey, languageKey] = [key('report'), key('found'), key('language')];
  const foundAt = (window: number, slot: number) =>
    window * WINDOW_SECONDS + (hash32(foundKey, window, slot) % WINDOW_SECONDS);

  return (window: number, slot: number) => {
    const origin = originOf(window, slot);
    const isNew = origin === window;
    const { articleSlot, item, fate, ...facts } = factsOf(origin, slot);
    const block = Math.floor(slot / BLOCK_SLOTS);
    const language = LANGUAGES[hash32(languageKey, block, 0) % LANGUAGES.length] ?? 'en';
    const source = sourceOf(origin, block * BLOCK_ITEMS + item, language);
    const article = articleOf(origin, articleSlot, language, foundAt(origin, articleSlot));
    const home = (source.home + Math.floor(facts.away * subscriptionIds.length)) % subscriptionIds.length;
    const score =
      fate === 'score'
        ? laterScore(facts.score, facts.drift, phase(window - origin), contentType)
        : facts.score;
    const matched = Math.round((source.sentences * score) / 100);
    const foundSeconds = foundAt(origin, slot);
    const endSeconds = (window + 1) * WINDOW_SECONDS;
    // These draws belong to this report; all before are the same in every report of the detection.
    prng.reseed(reportKey, window, slot);
    const scoredSeconds = isNew
      ? foundSeconds + prng.below(endSeconds - foundSeconds)
      : endSeconds - 1 - prng.below(WINDOW_SECONDS);
    return {
      subscription_id: subscriptionIds[home] ?? 0,
      source_internal_id: source.id,
      article_id: article.id,
      first_detected_at: formatSeconds(
        foundSeconds - (fate === 'earlier' && !isNew ? facts.earlierSeconds : 0),
      ),
      last_scored_at: formatSeconds(scoredSeconds),
      strength_score: score,
      first_detected_estimated: facts.estimated < 2 ? true : facts.estimated < 30 ? false : null,
      exported_at: prng.chance(0.05) ? null : formatSeconds(endSeconds + 2 + (window % 7)),
      ...source.columns,
      ...(contentType === 'text' && {
        strength_matched_sentences: source.isCounted ? matched : null,
        strength_article_sentences: facts.sentences > 55 ? null : facts.sentences + matched,
      }),
      ...article.columns,
      // Some facts are added or corrected after the first report.
      ...(fate === 'publisher' && isNew && { article_publisher_id: null, article_publisher_name: null }),
      ...(fate === 'headline' && isNew && { article_headline: null, article_published_at: null }),
      ...(fate === 'corrected' && !isNew && { article_headline: article.corrected }),
    } satisfies Partial<Columns>;
  };
}

/** The window in which the detection of a slot was new: the window itself, or an earlier one. */
function createOriginFinder(repeatKey: SeedKey, distanceKey: SeedKey) {
  const isRepeated = (window: number, slot: number) => hash32(repeatKey, window, slot) < REPEATED_SHARE;
  return (window: number, slot: number) => {
    if (!isRepeated(window, slot)) return window;
    let origin = window - 1 - skewed(hash32(distanceKey, window, slot), REPEAT_DISTANCE_MAX);
    while (isRepeated(origin, slot)) origin -= 1;
    return origin;
  };
}

/** What every report of a detection has in common, besides its item and article. */
function createFactsMaker(prng: Prng, contentType: ContentType, detectionKey: SeedKey, itemKey: SeedKey) {
  return (origin: number, slot: number) => {
    prng.reseed(detectionKey, origin, slot);
    // An odd slot may have a second item in its neighbour's article. It must be another item: otherwise two slots of one
    // window would be the same detection.
    const isSecond = slot % 2 === 1 && prng.chance(0.15);
    const articleSlot = isSecond ? slot - 1 : slot;
    const item = skewed(hash32(itemKey, origin, articleSlot), BLOCK_ITEMS) + (isSecond ? 1 : 0);
    return {
      articleSlot,
      /** Its number in the block. */
      item: item % BLOCK_ITEMS,
      /** How far from the subscription of the item, in [0, 1). */
      away: prng.chance(0.15) ? prng.unit() : 0,
      fate: prng.pick(FATES),
      score: drawScore(prng, contentType),
      drift: prng.unit(),
      estimated: prng.below(100),
      sentences: 2 + prng.below(60),
      earlierSeconds: 30 + prng.below(900),
    };
  };
}

/** The agency's own items: wire stories and photos, so drawn that all rows with an item agree. */
function createSourceMaker(prng: Prng, contentType: ContentType, itemKey: SeedKey, ageKey: SeedKey) {
  const isText = contentType === 'text';
  /** @param window in which it is found; it was published before */
  return (window: number, number: number, language: Language) => {
    const published = window - 1 - skewed(hash32(ageKey, window, number), ITEM_AGE_WINDOWS_MAX);
    prng.reseed(itemKey, published, number);
    const publishedAt = formatSeconds(published * WINDOW_SECONDS + prng.below(WINDOW_SECONDS));
    const id = numberedId(published, itemKey[0] + number);
    const sentences = 3 + prng.below(prng.chance(0.1) ? 120 : 40);
    const isCounted = prng.chance(0.9);
    const hex = () => prng.uint32().toString(16).padStart(8, '0');
    const columns = {
      source_id: sourceId(prng, isText ? 'story' : 'photo', id, publishedAt),
      source_published_at: prng.chance(0.04) ? null : publishedAt,
      ...(isText
        ? {
            source_language: prng.chance(0.03) ? null : language,
            source_syndicated: prng.chance(0.1) ? null : prng.chance(0.3),
            source_sentences: isCounted ? sentences : null,
          }
        : {
            source_image_url: prng.chance(0.65)
              ? null
              : `https://photos.${SAMPLE_HOST}/full/${id}.jpg?signature=${hex()}${hex()}`,
            source_origin_url: prng.chance(0.2)
              ? null
              : `https://archive.${SAMPLE_HOST}/desk-${1 + prng.below(9)}/${slug(prng)}/${id}?size=full&v=2`,
          }),
    };
    // `home` selects the subscription of most of its detections.
    return { id, home: prng.uint32(), sentences, isCounted, columns };
  };
}

function sourceId(prng: Prng, kind: string, id: number, publishedAt: string): string | null {
  const day = publishedAt.slice(0, 10).replaceAll('-', '');
  const drawn = prng.below(100);
  if (drawn < 4) return null;
  if (drawn < 60) return `urn:newsml:${SAMPLE_HOST}:${day}:${kind}-${id}:${1 + prng.below(3)}`;
  return `SNA${day}_${prng.below(100_000)}/${slug(prng)}`;
}

/** The publishers' articles in which items are found. */
function createArticleMaker(prng: Prng, contentType: ContentType, articleKey: SeedKey) {
  const isText = contentType === 'text';
  const byLanguage = Map.groupBy(publishers(), ({ language }) => language);
  /** @param foundSeconds when it was first found; it was published before */
  return (window: number, slot: number, language: Language, foundSeconds: number) => {
    prng.reseed(articleKey, window, slot);
    const id = numberedId(window, articleKey[0] + slot);
    const publisher = prng.chance(0.12) ? null : prng.pick(byLanguage.get(language) ?? []);
    const print = isText && publisher?.print === true;
    const { url, domain, host } = addressOf(prng, publisher, print, id);
    const title = headline(prng, language);
    const ageSeconds = prng.below(prng.chance(0.9) ? 5_400 : 400_000);
    const columns = {
      article_url: url,
      article_domain: domain,
      article_published_at: prng.chance(0.3) ? null : formatSeconds(foundSeconds - ageSeconds),
      article_headline: prng.chance(0.85) ? title : null,
      article_publisher_id: publisher?.id ?? null,
      // Some names have spaces around them, as in real databases.
      article_publisher_name:
        publisher === null || prng.chance(0.02)
          ? null
          : prng.chance(0.03)
            ? ` ${publisher.name}  `
            : publisher.name,
      ...(isText
        ? { article_print: !print && prng.chance(0.2) ? null : print }
        : {
            article_image_url: prng.chance(0.15)
              ? null
              : `https://${host}/media/${id}/${slug(prng)}.webp?crop=16:9`,
          }),
    };
    return { id, columns, corrected: `${headline(prng, language)} (${1 + prng.below(99)})` };
  };
}

function addressOf(prng: Prng, publisher: Publisher | null, print: boolean, id: number) {
  if (publisher === null && prng.chance(0.02)) {
    // An IP address has no registrable domain.
    const host = `192.0.2.${1 + prng.below(254)}:8080`;
    return { url: `http://${host}/${slug(prng)}.html`, domain: null, host };
  }
  const registrable = publisher?.domain ?? prng.pick(SITES);
  const host = prng.pick(HOST_PREFIXES) + (publisher?.asciiDomain ?? registrable);
  const said = prng.below(100);
  if (said === 99 || (print && said < 40)) return { url: null, domain: said < 30 ? registrable : null, host };
  const domain = said < 60 ? registrable : said < 75 ? host : said < 78 ? registrable.toUpperCase() : null;
  return { url: `http${prng.chance(0.95) ? 's' : ''}://${host}${pathOf(prng, print, id)}`, domain, host };
}

function pathOf(prng: Prng, print: boolean, id: number): string {
  if (print) return `/epaper/${id}/page-${1 + prng.below(48)}`;
  const query = prng.chance(0.25) ? prng.pick(QUERIES) : '';
  const kind = prng.below(10);
  if (kind < 3) return `/${slug(prng)}/${slug(prng)}-${id}.html${query}`;
  if (kind < 5) return `/index.php?article=${id}`;
  // Many feeds do not encode letters outside ASCII.
  return kind < 6 ? `/straße-ça-va/日本/${id}${query}` : `/news/${slug(prng)},${id}/${query}`;
}

/** How often a score has changed after that many windows: 0 when new, at most 3. */
function phase(distance: number): number {
  return distance === 0 ? 0 : distance < 3 ? 1 : distance < 10 ? 2 : 3;
}

export function drawScore(prng: Prng, contentType: ContentType): number {
  const kind = prng.below(100);
  if (kind < 10) return prng.pick((kind < 6 ? EXACT : CLOSE)[contentType]);
  const score = prng.unit() * TYPE_RULES[contentType].score_max;
  return rounded(score, kind < 30 ? 1 : kind < 80 ? 10 : 1000);
}

/**
 * The score after it has changed `phase` times (0 to 3): another one each time, within the range.
 * @param drift of the detection, in [0, 1)
 */
export function laterScore(
  firstScore: number,
  drift: number,
  phase: number,
  contentType: ContentType,
): number {
  const change = phase === 0 ? 0 : 1 + 2.5 * drift + 4 * phase;
  // Towards the middle and beyond, so that no end of the range swallows the change.
  return rounded(firstScore + (firstScore < TYPE_RULES[contentType].score_max / 2 ? change : -change), 1000);
}

function rounded(score: number, steps: number): number {
  return Math.round(score * steps) / steps;
}

function numberedId(window: number, number: number): number {
  return window * ROWS_MAX + (number % ROWS_MAX);
}

/** From 0 to `count` - 1, mostly low: most matches concern the few latest and biggest items. */
function skewed(hash: number, count: number): number {
  const unit = hash / 2 ** 32;
  return Math.floor(unit * unit * count);
}
