/**
 * The agency's own items: wire stories and photos, each drawn from the window in which it was published and
 * its number there, so that every row of every window that reports the item says the same of it.
 */
import { type ExportName, NUMBER_MAX } from '../detection/content-type.ts';
import { MINUTE_MS, SECOND_MS, WINDOW_MS } from '../time.ts';
import { type LanguageTag, slug } from './phrases.ts';
import { createPrng, hash32, type SeedKey, seedKey } from './prng.ts';
import { SAMPLE_HOST } from './sample-agency.ts';
import { timestamp } from './timestamps.ts';

/** Numbers of one window lie below this, so that a window's number and a row's make one id of 15 digits. */
export const SLOTS_MAX = 100_000_000;

/** Slots share their language and their few items by blocks of this size. */
const BLOCK_SLOTS_LOG2 = 4;
const ITEMS_PER_BLOCK: Record<ExportName, number> = { newswire: 6, imagewire: 10 };
/** An item goes on being found for half a day. */
const ITEM_AGE_WINDOWS_MAX = 72;

const LANGUAGES: readonly LanguageTag[] = (
  [
    ['en', 12],
    ['de', 6],
    ['fr', 4],
    ['es', 3],
    ['it', 2],
    ['pt-BR', 2],
    ['pl', 2],
    ['cs', 1],
    ['sv', 2],
    ['tr', 1],
    ['el', 1],
    ['ru', 1],
    ['ar', 1],
    ['he', 1],
    ['hi', 1],
    ['ja', 2],
    ['zh-Hans', 2],
    ['ko', 1],
  ] satisfies [LanguageTag, number][]
).flatMap(([language, weight]) => Array<LanguageTag>(weight).fill(language));

/** What is the same for a wire story and a photo, and what only one of them has (null in the other). */
export type Source = {
  internalId: number;
  /** Decides which subscription mostly watches the item: any 32-bit number. */
  home: number;
  id: string | null;
  publishedAt: string | null;
  language: string | null;
  syndicated: boolean | null;
  /** What the export says; `sentencesCounted` is there even before the export carries it. */
  sentences: number | null;
  sentencesCounted: number;
  imageUrl: string | null;
  originUrl: string | null;
};

export type SourceMaker = {
  language(slot: number): LanguageTag;
  /** The item that a slot's detection is about. */
  itemNumber(windowNumber: number, slot: number): number;
  /** The item next to it in the same block: always another one. */
  neighbour(itemNumber: number): number;
  /** The item of that number as it stands when the window reports it. */
  source(windowNumber: number, itemNumber: number): Source;
};

export function createSourceMaker(seed: string, exportName: ExportName): SourceMaker {
  const prng = createPrng();
  const itemKey = seedKey(seed, `${exportName} item`);
  const choiceKey = seedKey(seed, `${exportName} item of slot`);
  const ageKey = seedKey(seed, `${exportName} item age`);
  const languageKey = seedKey(seed, `${exportName} language`);
  const perBlock = ITEMS_PER_BLOCK[exportName];
  const firstNumber = itemKey[0] % SLOTS_MAX;

  function source(windowNumber: number, itemNumber: number): Source {
    const publishedWindow =
      windowNumber - 1 - skewed(hash32(ageKey, windowNumber, itemNumber), ITEM_AGE_WINDOWS_MAX);
    prng.reseed(itemKey, publishedWindow, itemNumber);
    const internalId = numberedId(publishedWindow, firstNumber + itemNumber);
    const publishedMs = publishedWindow * WINDOW_MS + prng.below(10) * MINUTE_MS + prng.below(60) * SECOND_MS;
    const publishedAt = timestamp(publishedMs / SECOND_MS);
    const isText = exportName === 'newswire';
    const language = languageOf(languageKey, itemNumber, perBlock);
    const sentencesCounted = 3 + prng.below(prng.chance(0.1) ? 120 : 40);
    return {
      internalId,
      home: prng.uint32(),
      id: sourceId(publishedAt, internalId, isText),
      publishedAt: prng.chance(0.04) ? null : publishedAt,
      language: isText && !prng.chance(0.03) ? language : null,
      syndicated: isText && !prng.chance(0.1) ? prng.chance(0.3) : null,
      sentences: isText && !prng.chance(0.1) ? sentencesCounted : null,
      sentencesCounted,
      imageUrl: isText || prng.chance(0.65) ? null : agencyPhoto(internalId),
      originUrl: isText || prng.chance(0.2) ? null : origin(internalId),
    };
  }

  function sourceId(publishedAt: string, internalId: number, isText: boolean): string | null {
    const kind = prng.below(100);
    if (kind < 4) return null;
    const day = publishedAt.slice(0, 4) + publishedAt.slice(5, 7) + publishedAt.slice(8, 10);
    if (kind < 45) {
      return `urn:newsml:${SAMPLE_HOST}:${day}:${isText ? 'story' : 'photo'}-${internalId}:${1 + prng.below(3)}`;
    }
    if (kind < 60) return `SNA${isText ? 'T' : 'P'}${day}_${prng.below(100_000)}/${slug(prng)}`;
    return uuid();
  }

  function uuid(): string {
    return `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'[prng.below(4)]}${hex(3)}-${hex(8)}${hex(4)}`;
  }

  function hex(digits: number): string {
    return (prng.uint32() >>> (32 - 4 * digits)).toString(16).padStart(digits, '0');
  }

  function agencyPhoto(internalId: number): string {
    return `https://photos.${SAMPLE_HOST}/full/${internalId}.jpg?signature=${prng.uint32().toString(36)}${prng.uint32().toString(36)}`;
  }

  function origin(internalId: number): string {
    return `https://archive.${SAMPLE_HOST}/desk-${1 + prng.below(9)}/${slug(prng)}/${internalId}?size=full&v=${prng.below(4)}`;
  }

  return {
    language: (slot) =>
      LANGUAGES[hash32(languageKey, slot >>> BLOCK_SLOTS_LOG2, 0) % LANGUAGES.length] ?? 'en',
    itemNumber: (windowNumber, slot) => {
      const chosen = skewed(hash32(choiceKey, windowNumber, slot), perBlock);
      return (slot >>> BLOCK_SLOTS_LOG2) * perBlock + chosen;
    },
    neighbour: (itemNumber) => {
      const within = itemNumber % perBlock;
      return itemNumber - within + ((within + 1) % perBlock);
    },
    source,
  };
}

/** An id of at most 15 digits that grows with the windows, as a counter of the real service would. */
export function numberedId(windowNumber: number, number: number): number {
  const id = windowNumber * SLOTS_MAX + (number % SLOTS_MAX);
  if (id > NUMBER_MAX) throw new RangeError(`window ${windowNumber} is too late for an id of 15 digits`);
  return id;
}

/** From 0 to `count` - 1, low numbers far more often: most matches concern the few latest and biggest items. */
export function skewed(hash: number, count: number): number {
  const unit = hash / 4294967296;
  return Math.floor(unit * unit * count);
}

function languageOf(key: SeedKey, itemNumber: number, perBlock: number): LanguageTag {
  return LANGUAGES[hash32(key, Math.floor(itemNumber / perBlock), 0) % LANGUAGES.length] ?? 'en';
}
