/**
 * What each slot of each window reports: a detection, in its state at that time.
 *
 * A report depends only on the seed, the export, the window's number and the slot's, so any window can be drawn alone,
 * and windows of different runs fit together. About a tenth of the slots repeat the detection that the same slot
 * reported some windows before: they draw it as it was in that window, and change it by the time that has passed.
 */
import { SCALES } from '../detection/band.ts';
import {
  CONTENT_TYPE_OF_EXPORT,
  type ContentType,
  type ExportName,
  perContentType,
  TYPE_RULES,
} from '../detection/content-type.ts';
import { SECOND_MS, WINDOW_MS } from '../time.ts';
import { type Article, createArticleMaker } from './articles.ts';
import { createPrng, hash32, type Prng, type SeedKey, seedKey } from './prng.ts';
import { CLOSE_SCORES, createSourceMaker, type Source, type SourceMaker, skewed } from './sources.ts';
import { timestamp } from './timestamps.ts';

export type Report = {
  subscriptionId: number;
  score: number;
  firstDetectedAt: string;
  lastScoredAt: string;
  /** Null: omitted by the export. */
  estimated: boolean | null;
  exportedAt: string | null;
  source: Source;
  article: Article;
};

/** How many windows a report goes back at most in one step. If that window is a repetition itself, it goes on. */
const REPEAT_DISTANCE_MAX = 24;
const REPEATED_SHARE = 0.1 * 4294967296;
const WINDOW_SECONDS = WINDOW_MS / SECOND_MS;

/** What changes when a detection is reported again; `steady`: nothing. */
const FATES = 'steady steady steady score score score publisher headline corrected earlier'.split(' ');

/** Match strengths cover all bands, with their exact thresholds. */
const EXACT = perContentType((contentType) => [
  0,
  ...SCALES[contentType].thresholds,
  TYPE_RULES[contentType].score_max,
]);

/** @param subscriptionIds at least one */
export function createReportMaker(seed: string, exportName: ExportName, subscriptionIds: readonly number[]) {
  const prng = createPrng();
  const sources = createSourceMaker(seed, exportName);
  const articleAt = createArticleMaker(seed, exportName);
  const originOf = createOriginFinder(seed, exportName);
  const detectionKey = seedKey(seed, `${exportName} detection`);
  const reportKey = seedKey(seed, `${exportName} report`);
  const foundKey = seedKey(seed, `${exportName} found`);
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];

  return (windowNumber: number, slot: number): Report => {
    const originWindow = originOf(windowNumber, slot);
    const distance = windowNumber - originWindow;
    const foundSeconds = secondsWithin(foundKey, originWindow, slot);

    // These draws are the same in every report of the detection.
    prng.reseed(detectionKey, originWindow, slot);
    const { articleSlot, itemNumber } = pairing(prng, sources, originWindow, slot);
    const source = sources.source(originWindow, itemNumber);
    const articleSeconds = secondsWithin(foundKey, originWindow, articleSlot);
    const article = articleAt(originWindow, articleSlot, sources.language(slot), articleSeconds);
    const away = prng.chance(0.15) ? prng.below(subscriptionIds.length) : 0;
    const subscriptionId = subscriptionIds[(source.home + away) % subscriptionIds.length] ?? 0;
    const fate = prng.pick(FATES);
    const firstScore = drawScore(prng, contentType);
    const drift = prng.unit();
    const estimated = prng.below(100);
    const earlierSeconds = 30 + prng.below(900);

    // These draws belong to this report.
    prng.reseed(reportKey, windowNumber, slot);
    const lastSecond = endSeconds(windowNumber);
    const isNew = distance === 0;
    const scoredSeconds = isNew
      ? foundSeconds + prng.below(lastSecond - foundSeconds)
      : lastSecond - 1 - prng.below(WINDOW_SECONDS);
    return {
      subscriptionId,
      score: fate === 'score' ? laterScore(firstScore, drift, phase(distance), contentType) : firstScore,
      firstDetectedAt: timestamp(fate === 'earlier' && !isNew ? foundSeconds - earlierSeconds : foundSeconds),
      lastScoredAt: timestamp(scoredSeconds),
      estimated: estimated < 2 ? true : estimated < 30 ? false : null,
      exportedAt: prng.chance(0.05) ? null : timestamp(lastSecond + 2 + (windowNumber % 7)),
      source,
      article: asKnown(article, fate, isNew),
    };
  };
}

/** The window in which the detection of a slot was new: the window itself, or an earlier one. */
function createOriginFinder(seed: string, exportName: ExportName) {
  const repeatKey = seedKey(seed, `${exportName} repeat`);
  const distanceKey = seedKey(seed, `${exportName} repeat distance`);
  return (windowNumber: number, slot: number) => {
    if (hash32(repeatKey, windowNumber, slot) >= REPEATED_SHARE) return windowNumber;
    let window = windowNumber - 1 - skewed(hash32(distanceKey, windowNumber, slot), REPEAT_DISTANCE_MAX);
    while (hash32(repeatKey, window, slot) < REPEATED_SHARE) window -= 1;
    return window;
  };
}

/**
 * The article and the item of a slot's detection. An odd slot may have a second item in its neighbour's article; it must
 * be another item, otherwise two slots of one window would be the same detection.
 */
function pairing(prng: Prng, sources: SourceMaker, windowNumber: number, slot: number) {
  const isSecond = slot % 2 === 1 && prng.chance(0.15);
  const articleSlot = isSecond ? slot - 1 : slot;
  const articleItem = sources.itemNumber(windowNumber, articleSlot);
  return { articleSlot, itemNumber: isSecond ? sources.neighbour(articleItem) : articleItem };
}

/** The article as known at that time: some facts are added or corrected after the first report. */
function asKnown(article: Article, fate: string, isNew: boolean): Article {
  if (fate === 'publisher' && isNew) return { ...article, publisherId: null, publisherName: null };
  if (fate === 'headline' && isNew) return { ...article, headline: null, publishedAt: null };
  if (fate === 'corrected' && !isNew) return { ...article, headline: article.headlineCorrected };
  return article;
}

/** How often a score has changed after that many windows: 0 when new, at most 3. */
function phase(distance: number): number {
  return distance === 0 ? 0 : distance < 3 ? 1 : distance < 10 ? 2 : 3;
}

function secondsWithin(key: SeedKey, windowNumber: number, slot: number): number {
  return endSeconds(windowNumber - 1) + (hash32(key, windowNumber, slot) % WINDOW_SECONDS);
}

function endSeconds(windowNumber: number): number {
  return (windowNumber + 1) * WINDOW_SECONDS;
}

export function drawScore(prng: Prng, contentType: ContentType): number {
  const kind = prng.below(100);
  if (kind < 6) return prng.pick(EXACT[contentType]);
  if (kind < 10) return prng.pick(CLOSE_SCORES[contentType]);
  const score = prng.unit() * TYPE_RULES[contentType].score_max;
  return kind < 30 ? Math.round(score) : kind < 80 ? rounded(score, 10) : rounded(score, 1000);
}

/**
 * The score after it has changed `phase` times (0 to 3): another one each time, within the range.
 *
 * @param drift of the detection, in [0, 1)
 */
export function laterScore(
  firstScore: number,
  drift: number,
  phase: number,
  contentType: ContentType,
): number {
  if (phase === 0) return firstScore;
  const change = 1 + 2.5 * drift + 4 * phase;
  // Towards the middle and beyond, so that no end of the range swallows the change.
  return rounded(
    firstScore < TYPE_RULES[contentType].score_max / 2 ? firstScore + change : firstScore - change,
    1000,
  );
}

function rounded(score: number, steps: number): number {
  return Math.round(score * steps) / steps;
}
