/** What sample rows are made of: headlines, publishers and sites, all invented, and the same for every seed. */
import { domainToASCII } from 'node:url';
import type { Prng } from './prng.ts';

export interface Publisher {
  readonly id: number;
  /** The tag of the language it writes in. */
  readonly language: string;
  readonly name: string;
  /** The registrable domain in Unicode, and in punycode. */
  readonly domain: string;
  readonly asciiDomain: string;
  /** Its newswire rows have `article_print`. */
  readonly print: boolean;
}

/** The three parts of a headline and the two of a publisher's name, each with its choices; suffixes of publishers. */
function words(parts: readonly string[], names: readonly string[], suffixes: string) {
  const choices = (text: string) => text.split('|');
  return { parts: parts.map(choices), names: names.map(choices), suffixes: choices(suffixes) };
}

const LANGUAGES = {
  en: words(
    [
      "Harbour town|Lighthouse keeper|The night ferry|Valley council|Beekeepers' union|Old tramway|Orchard festival|Tide office|Village band",
      'reopens|says "no" to|doubles the budget for|postpones|votes on|welcomes|loses track of|rebuilds',
      'the longest footbridge|a new school roof|its 200-year-old clock|the winter market|10,000 paper kites|plans for a cable car|the spring regatta, again|a £3m pump house',
    ],
    [
      "Marrowby|Netherquill|Oxbarrow|Thistlemere|Wexcombe Sound|Fallow Creek|Saint Orrin's Bay|Koorabell Flats|Tidegate",
      'Courier & Post|Lantern|Evening Bell|Observer, The',
    ],
    'co.uk|ie|com|net|com.au|co.nz',
  ),
  de: words(
    [
      'Die Talgemeinde|Das Hafenamt|Der Sägewerksverein|Die Brückenwacht|Das Mühlenmuseum|Die Fährgenossenschaft|Der Gemeinderat|Die Sternwarte',
      'verschiebt|eröffnet|prüft|feiert|bezweifelt|übernimmt|kürzt|verteidigt',
      'den „großen“ Umbau|die Straße zum Moor|das Frühlingsfest|eine zweite Seilbahn|die Schlüsselübergabe|den Lärmschutz, endlich|das Käsemuseum|500 neue Bäume',
    ],
    ['Quellmoor|Brünnau|Falkenrieder|Süßbach', 'Bote|Tagblatt|Kurier|Rundschau am Morgen'],
    'de|at|ch',
  ),
};

export type Language = keyof typeof LANGUAGES;

/** What desks and publishing systems add to a headline. */
const PREFIXES = ['LIVE: ', '+++ ', '🔴 ', '📷 ', '[Update] ', '-5 °C: ', '#news ', '👩‍🚒 '];
const SUFFIXES =
  " – video| 🎉🪁| (2/3)|…| <b>| & more| \\o/|; it's official|\u200f|\u00a0»| Cafe\u0301|: أخبار| 谷の橋|\tPHOTOS|\nUpdated".split(
    '|',
  );
/** English in every language: an address must not depend on a transliteration. */
const SLUGS =
  'bridge-opens|kite-festival|harbour-clock|winter-market|valley-vote|school-roof|old-tramway|mill-museum'.split(
    '|',
  );
const SITE_NAMES = 'mossy-kettle|two-umbrellas|paper-heron|slow-tram|ninth-orchard|tin-comet'.split('|');
/** Registrable domains without a known publisher: their rows have a domain and no publisher. */
export const SITES: readonly string[] = SITE_NAMES.flatMap((name) =>
  ['com', 'info', 'co.uk', 'de', 'fr', 'com.au', 'io'].map((suffix) => `${name}-notes.${suffix}`),
);

/** One headline in eight has characters that a careless parser mishandles. */
export function headline(prng: Prng, language: Language): string {
  const text = LANGUAGES[language].parts.map((part) => prng.pick(part)).join(' ');
  const dress = prng.below(1024);
  if (dress >= 128) return text;
  if (dress < 1) return `${text}. `.repeat(20).trim();
  if (dress < 20) return `"${text}"`;
  return dress < 70 ? prng.pick(PREFIXES) + text : text + prng.pick(SUFFIXES);
}

/** For the path of an address. */
export function slug(prng: Prng): string {
  return prng.pick(SLUGS);
}

/** Made on first use: every start of the program would otherwise wait for them. */
let made: ReadonlyMap<string, readonly Publisher[]> | undefined;

export function publishersOf(language: Language): readonly Publisher[] {
  made ??= Map.groupBy(publishers(), (publisher) => publisher.language);
  return made.get(language) ?? [];
}

export function publishers(): readonly Publisher[] {
  return Object.entries(LANGUAGES)
    .flatMap(([language, { names, suffixes }]) => {
      const [firsts = [], seconds = []] = names;
      const all = firsts.flatMap((first) => seconds.map((second) => `${first} ${second}`));
      return all.flatMap((name) => suffixes.map((suffix) => ({ language, name, suffix })));
    })
    .map(({ suffix, ...publisher }, index) => {
      const domain = `${publisher.name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')}.${suffix}`;
      // Some ids have fifteen digits, the maximum.
      const id = index % 50 === 49 ? 999_999_999_999_999 - index : 1000 + index * 37;
      return { ...publisher, id, domain, asciiDomain: domainToASCII(domain), print: index % 7 === 3 };
    });
}
