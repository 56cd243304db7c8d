/**
 * The invented publishers of the articles: a few hundred, under public suffixes of one and of two labels, some with names
 * outside ASCII. They are the same for every seed.
 */
import { domainToASCII } from 'node:url';
import type { LanguageTag } from './phrases.ts';

export type Publisher = {
  id: number;
  name: string;
  language: LanguageTag;
  /** The registrable domain in Unicode. */
  domain: string;
  /** The same in punycode. */
  asciiDomain: string;
  /** Its newswire rows have `article_print`. */
  print: boolean;
};

/**
 * Language, public suffixes, places, titles, and how the latter two form a name. A part is `name=slug`; the default slug is
 * the name without accents. `native`: the domain is the name itself.
 */
type Region = {
  language: LanguageTag;
  suffixes: string;
  places: string;
  titles: string;
  placeLast?: boolean;
  native?: boolean;
};

const REGIONS: readonly Region[] = [
  {
    language: 'en',
    suffixes: 'co.uk|org.uk|ie',
    places: 'Marrowby|Netherquill|Oxbarrow|Thistlemere|Wexcombe Sound',
    titles: 'Courier & Post=courier|Lantern|Evening Bell|Gazetteer',
  },
  {
    language: 'en',
    suffixes: 'com|net|org',
    places: "Fallow Creek|Kettle Bluffs|Saint Orrin's Bay=st-orrins-bay|Quarry Lake|Dunmarrow",
    titles: 'Ledger-Sentinel|Daily Plover|Observer, The=observer|Beacon',
  },
  {
    language: 'en',
    suffixes: 'com.au|co.nz|co.za',
    places: 'Wattlemoor|Koorabell Flats|Saltpan Reach|Tidegate',
    titles: 'Bulletin|Magpie|Coast Star|Tribune',
  },
  {
    language: 'de',
    suffixes: 'de|at|ch',
    places: 'Quellmoor|Brünnau=bruennau|Falkenrieder|Oberwöhrden=oberwoehrden|Weißenquell=weissenquell',
    titles: 'Bote|Tagblatt|Anzeiger|Rundschau am Morgen=rundschau',
  },
  {
    language: 'de',
    suffixes: 'de',
    places: 'Grünmühl|Öhringsau|Süßbach',
    titles: 'Kurier|Blätter',
    native: true,
  },
  {
    language: 'ar',
    suffixes: 'com|com.eg|ae',
    places: 'الوادي=alwadi-albaeed|المنارة=almanara-sea',
    titles: 'صحيفة=sahifa|أخبار=akhbar',
    placeLast: true,
  },
  {
    language: 'ja',
    suffixes: 'co.jp|or.jp',
    places: '霧灯=kirito|水車台=suishadai',
    titles: '新報=shinpo|日報=nippo',
  },
  { language: 'ja', suffixes: 'jp', places: '霧谷|凧浜', titles: '通信|朝報', native: true },
];

/** Sites without a known publisher: their rows have a domain and no publisher. */
const SITE_NAMES =
  'mossy-kettle|two-umbrellas|paper-heron|slow-tram|ninth-orchard|quiet-gravel|tin-comet'.split('|');
const SITE_SUFFIXES = 'com|net|info|co.uk|de|fr|com.au|eu|io|org.nz'.split('|');

/** Registrable domains without a known publisher. */
export const SITES: readonly string[] = SITE_NAMES.flatMap((name) =>
  SITE_SUFFIXES.map((suffix) => `${name}-notes.${suffix}`),
);

/** Made on first use: every start of the program would otherwise wait for them. */
let made: readonly Publisher[] | undefined;

export function publishers(): readonly Publisher[] {
  made ??= REGIONS.flatMap(regionPublishers).map(numbered);
  return made;
}

/** Publishers by the language they write in. */
export function publishersByLanguage(): ReadonlyMap<LanguageTag, readonly Publisher[]> {
  return Map.groupBy(publishers(), (publisher) => publisher.language);
}

function regionPublishers(region: Region): Omit<Publisher, 'id' | 'print'>[] {
  const joint = region.language === 'ja' ? '' : ' ';
  return region.suffixes.split('|').flatMap((suffix) =>
    region.places.split('|').flatMap((placePart) =>
      region.titles.split('|').map((titlePart) => {
        const [place, placeSlug] = named(placePart);
        const [title, titleSlug] = named(titlePart);
        const name = region.placeLast ? title + joint + place : place + joint + title;
        const label = region.native ? nativeLabel(name) : `${titleSlug}-${placeSlug}`;
        const domain = `${label}.${suffix}`;
        return { name, language: region.language, domain, asciiDomain: domainToASCII(domain) };
      }),
    ),
  );
}

function numbered(publisher: Omit<Publisher, 'id' | 'print'>, index: number): Publisher {
  // Some ids have fifteen digits, the maximum.
  const id = index % 50 === 49 ? 999_999_999_999_999 - index : 1000 + index * 37;
  return { id, ...publisher, print: index % 7 === 3 };
}

function named(part: string): [name: string, slug: string] {
  const [name = '', slug] = part.split('=');
  return [name, slug ?? plainLabel(name)];
}

function plainLabel(name: string): string {
  const plain = name.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  return plain.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
}

function nativeLabel(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-');
}
