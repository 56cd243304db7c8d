/**
 * What each slot of each window reports: which detection, and what is known of it by then.
 *
 * A report depends on nothing but the seed, the export, the window's number and the slot's, so any window can be
 * drawn on its own and windows of different runs fit together. About a tenth of the slots report again what the
 * same slot reported some windows before: they go back to that window, draw the detection as it was, and change
 * it by how much time has passed.
 */
import { CONTENT_TYPE_OF_EXPORT, type ExportName } from '../detection/content-type.ts';
import { SECOND_MS, WINDOW_MS } from '../time.ts';
import { type Article, createArticleMaker } from './articles.ts';
import { createPrng, hash32, type Prng, type SeedKey, seedKey } from './prng.ts';
import { drawScore, laterScore } from './scores.ts';
import { createSourceMaker, type Source, type SourceMaker, skewed } from './sources.ts';
import { timestamp } from './timestamps.ts';

export type Report = {
  subscriptionId: number;
  score: number;
  firstDetectedAt: string;
  lastScoredAt: string;
  /** Null where the export does not say. */
  estimated: boolean | null;
  exportedAt: string | null;
  source: Source;
  article: Article;
};

export type ReportMaker = (windowNumber: number, slot: number) => Report;

/** The most windows that a report goes back in one step; it takes another where that window went back itself. */
const REPEAT_DISTANCE_MAX = 24;
const REPEATED_SHARE = 0.1 * 4294967296;
const WINDOW_SECONDS = WINDOW_MS / SECOND_MS;

/** How a detection fares when it is reported again; `steady` is scored again with the same outcome. */
const FATES = 'steady steady steady score score score publisher headline corrected earlier'.split(' ');

/** @param subscriptionIds at least one */
export function createReportMaker(
  seed: string,
  exportName: ExportName,
  subscriptionIds: readonly number[],
): ReportMaker {
  const prng = createPrng();
  const sources = createSourceMaker(seed, exportName);
  const articleAt = createArticleMaker(seed, exportName);
  const originOf = createOriginFinder(seed, exportName);
  const detectionKey = seedKey(seed, `${exportName} detection`);
  const reportKey = seedKey(seed, `${exportName} report`);
  const foundKey = seedKey(seed, `${exportName} found`);
  const contentType = CONTENT_TYPE_OF_EXPORT[exportName];

  return (windowNumber, slot) => {
    const originWindow = originOf(windowNumber, slot);
    const distance = windowNumber - originWindow;
    const foundSeconds = secondsWithin(foundKey, originWindow, slot);

    // What is drawn here is the same in every report of the detection.
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

    // And what is drawn here is this report's own.
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

/** The window in which what a slot reports was new: the window itself, or one before it. */
function createOriginFinder(seed: string, exportName: ExportName): ReportOrigin {
  const repeatKey = seedKey(seed, `${exportName} repeat`);
  const distanceKey = seedKey(seed, `${exportName} repeat distance`);
  return (windowNumber, slot) => {
    if (hash32(repeatKey, windowNumber, slot) >= REPEATED_SHARE) return windowNumber;
    let window = windowNumber - 1 - skewed(hash32(distanceKey, windowNumber, slot), REPEAT_DISTANCE_MAX);
    while (hash32(repeatKey, window, slot) < REPEATED_SHARE) window -= 1;
    return window;
  };
}

type ReportOrigin = (windowNumber: number, slot: number) => number;

/**
 * Which article a slot's detection is in, and which item it is of. An odd slot may be a second item in its
 * neighbour's article; it must be another item, or two slots of one window would be the same detection.
 */
function pairing(prng: Prng, sources: SourceMaker, windowNumber: number, slot: number) {
  const isSecond = slot % 2 === 1 && prng.chance(0.15);
  const articleSlot = isSecond ? slot - 1 : slot;
  const articleItem = sources.itemNumber(windowNumber, articleSlot);
  return { articleSlot, itemNumber: isSecond ? sources.neighbour(articleItem) : articleItem };
}

/** The article as far as it is known: some things are looked up, or put right, after the first report. */
function asKnown(article: Article, fate: string, isNew: boolean): Article {
  if (fate === 'publisher' && isNew) return { ...article, publisherId: null, publisherName: null };
  if (fate === 'headline' && isNew) return { ...article, headline: null, publishedAt: null };
  if (fate === 'corrected' && !isNew) return { ...article, headline: article.headlineCorrected };
  return article;
}

/** How often a score has changed when that many windows have passed: 0 when new, at most 3. */
function phase(distance: number): number {
  return distance === 0 ? 0 : distance < 3 ? 1 : distance < 10 ? 2 : 3;
}

function secondsWithin(key: SeedKey, windowNumber: number, slot: number): number {
  return endSeconds(windowNumber - 1) + (hash32(key, windowNumber, slot) % WINDOW_SECONDS);
}

function endSeconds(windowNumber: number): number {
  return (windowNumber + 1) * WINDOW_SECONDS;
}
