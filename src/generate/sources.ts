/**
 * The agency's own items: wire stories and photos, each drawn from its number in the window in which it was published,
 * so that all rows with the item agree.
 */
import { type ContentType, type ExportName, NUMBER_MAX } from '../detection/content-type.ts';
import { MINUTE_MS, SECOND_MS, WINDOW_MS } from '../time.ts';
import { type LanguageTag, slug } from './phrases.ts';
import { createPrng, hash32, type Prng, seedKey } from './prng.ts';
import { SAMPLE_HOST } from './sample-agency.ts';
import { timestamp } from './timestamps.ts';

/** More than the numbers in one window, so that a window's number and a row's make an id of 15 digits. */
export const SLOTS_MAX = 100_000_000;

/** A block of slots has one language and a few items. */
const BLOCK_SLOTS_LOG2 = 4;
const ITEMS_PER_BLOCK: Record<ExportName, number> = { newswire: 6, imagewire: 10 };
/** Scores just below a threshold, and where rounding would lift a score over one. */
export const CLOSE_SCORES: Record<ContentType, readonly number[]> = {
  text: [0.1, 24.99, 24.5, 49.5, 49.999, 74.999, 94.9, 95.01, 99.9],
  image: [0.1, 29.99, 29.5, 59.5, 59.999, 60.01, 98.99],
};
/** An item is found for half a day. */
const ITEM_AGE_WINDOWS_MAX = 72;

const LANGUAGES: readonly LanguageTag[] = ['en', 'en', 'en', 'de', 'de', 'ar', 'ja'];

/** A wire story or a photo; members that only the other one has are null. */
export type Source = {
  internalId: number;
  /** A 32-bit number that selects the subscription of most detections. */
  home: number;
  id: string | null;
  publishedAt: string | null;
  language: string | null;
  syndicated: boolean | null;
  /** In the export; `sentencesCounted` is known even if the export omits it. */
  sentences: number | null;
  sentencesCounted: number;
  imageUrl: string | null;
  originUrl: string | null;
};

export type SourceMaker = ReturnType<typeof createSourceMaker>;

export function createSourceMaker(seed: string, exportName: ExportName) {
  const prng = createPrng();
  const itemKey = seedKey(seed, `${exportName} item`);
  const choiceKey = seedKey(seed, `${exportName} item of slot`);
  const ageKey = seedKey(seed, `${exportName} item age`);
  const languageKey = seedKey(seed, `${exportName} language`);
  const perBlock = ITEMS_PER_BLOCK[exportName];
  const firstNumber = itemKey[0] % SLOTS_MAX;
  const isText = exportName === 'newswire';
  const languageOf = (block: number) => LANGUAGES[hash32(languageKey, block, 0) % LANGUAGES.length] ?? 'en';

  return {
    language: (slot: number) => languageOf(slot >>> BLOCK_SLOTS_LOG2),
    /** The item of a slot's detection. */
    itemNumber: (windowNumber: number, slot: number) => {
      const chosen = skewed(hash32(choiceKey, windowNumber, slot), perBlock);
      return (slot >>> BLOCK_SLOTS_LOG2) * perBlock + chosen;
    },
    /** The next item of the same block: always another one. */
    neighbour: (itemNumber: number) => {
      const within = itemNumber % perBlock;
      return itemNumber - within + ((within + 1) % perBlock);
    },
    source: (windowNumber: number, itemNumber: number) => {
      const age = skewed(hash32(ageKey, windowNumber, itemNumber), ITEM_AGE_WINDOWS_MAX);
      const publishedWindow = windowNumber - 1 - age;
      prng.reseed(itemKey, publishedWindow, itemNumber);
      const publishedMs =
        publishedWindow * WINDOW_MS + prng.below(10) * MINUTE_MS + prng.below(60) * SECOND_MS;
      const internalId = numberedId(publishedWindow, firstNumber + itemNumber);
      const language = languageOf(Math.floor(itemNumber / perBlock));
      return drawSource(prng, isText, {
        internalId,
        language,
        publishedAt: timestamp(publishedMs / SECOND_MS),
      });
    },
  };
}

interface Published {
  readonly internalId: number;
  readonly publishedAt: string;
  readonly language: LanguageTag;
}

function drawSource(prng: Prng, isText: boolean, { internalId, publishedAt, language }: Published): Source {
  const sentencesCounted = 3 + prng.below(prng.chance(0.1) ? 120 : 40);
  return {
    internalId,
    home: prng.uint32(),
    id: sourceId(prng, isText, internalId, publishedAt),
    publishedAt: prng.chance(0.04) ? null : publishedAt,
    language: isText && !prng.chance(0.03) ? language : null,
    syndicated: isText && !prng.chance(0.1) ? prng.chance(0.3) : null,
    sentences: isText && !prng.chance(0.1) ? sentencesCounted : null,
    sentencesCounted,
    imageUrl: isText || prng.chance(0.65) ? null : agencyPhoto(prng, internalId),
    originUrl: isText || prng.chance(0.2) ? null : origin(prng, internalId),
  };
}

function sourceId(prng: Prng, isText: boolean, internalId: number, publishedAt: string): string | null {
  const kind = prng.below(100);
  if (kind < 4) return null;
  const day = publishedAt.slice(0, 10).replaceAll('-', '');
  if (kind < 45)
    return `urn:newsml:${SAMPLE_HOST}:${day}:${isText ? 'story' : 'photo'}-${internalId}:${1 + prng.below(3)}`;
  if (kind < 60) return `SNA${isText ? 'T' : 'P'}${day}_${prng.below(100_000)}/${slug(prng)}`;
  const hex = (digits: number) => (prng.uint32() >>> (32 - 4 * digits)).toString(16).padStart(digits, '0');
  return `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'[prng.below(4)]}${hex(3)}-${hex(8)}${hex(4)}`;
}

function agencyPhoto(prng: Prng, internalId: number): string {
  return `https://photos.${SAMPLE_HOST}/full/${internalId}.jpg?signature=${prng.uint32().toString(36)}${prng.uint32().toString(36)}`;
}

function origin(prng: Prng, internalId: number): string {
  return `https://archive.${SAMPLE_HOST}/desk-${1 + prng.below(9)}/${slug(prng)}/${internalId}?size=full&v=${prng.below(4)}`;
}

/** An id of at most 15 digits that grows with the windows. */
export function numberedId(windowNumber: number, number: number): number {
  const id = windowNumber * SLOTS_MAX + (number % SLOTS_MAX);
  if (id > NUMBER_MAX) throw new RangeError(`window ${windowNumber} is too late for an id of 15 digits`);
  return id;
}

/** From 0 to `count` - 1, mostly low: most matches concern the few latest and biggest items. */
export function skewed(hash: number, count: number): number {
  const unit = hash / 4294967296;
  return Math.floor(unit * unit * count);
}
