/** What sample rows are made of: headlines, publishers and sites, all invented, and the same for every seed. */
import { domainToASCII } from 'node:url';
import type { Prng } from './prng.ts';

export type Publisher = ReturnType<typeof publishers>[number];

const listed = (text: string) => text.split('|');
/** The three parts of a headline. */
const PARTS = [
  "Harbour town|Lighthouse keeper|The night ferry|Valley council|Beekeepers' union|Old tramway|Café Süßbach|Tide office|Village band",
  'reopens|says "no" to|doubles the budget for|postpones|votes on|welcomes|loses track of|rebuilds',
  'the longest footbridge|a new school roof|its 200-year-old clock|the winter market|10,000 paper kites|plans for a cable car|the spring regatta, again|a £3m pump house',
].map(listed);
/** The two parts of a publisher's name, and the suffixes of its domain. */
const TOWNS = listed(
  "Marrowby|Netherquill|Oxbarrow|Thistlemere|Wexcombe Sound|Brünnau|Saint Orrin's Bay|Koorabell Flats|Tidegate",
);
const TITLES = listed('Courier & Post|Lantern|Evening Bell|Observer, The');
const DOMAIN_SUFFIXES = listed('co.uk|ie|com|net|com.au|de');

/** What desks and publishing systems add to a headline. */
const PREFIXES = ['LIVE: ', '+++ ', '🔴 ', '📷 ', '[Update] ', '-5 °C: ', '#news ', '👩‍🚒 '];
const SUFFIXES = listed(
  " – video| 🎉🪁| (2/3)|…| <b>| & more| \\o/|; it's official|\u200f|\u00a0»| Cafe\u0301|: أخبار| 谷の橋|\tPHOTOS|\nUpdated",
);
/** For the path of an address. */
export const SLUGS = listed(
  'bridge-opens|kite-festival|harbour-clock|winter-market|valley-vote|school-roof|old-tramway|mill-museum',
);
/** Registrable domains without a known publisher: their rows have a domain and no publisher. */
export const SITES = listed(
  'mossy-kettle|two-umbrellas|paper-heron|slow-tram|ninth-orchard|tin-comet',
).flatMap((name) => listed('com|info|co.uk|de|fr|com.au|io').map((suffix) => `${name}-notes.${suffix}`));

/** One headline in eight has characters that a careless parser mishandles. */
export function headline(prng: Prng): string {
  const text = PARTS.map((part) => prng.pick(part)).join(' ');
  const dress = prng.below(1024);
  if (dress >= 128) return text;
  if (dress < 1) return `${text}. `.repeat(20).trim();
  if (dress < 20) return `"${text}"`;
  return dress < 70 ? prng.pick(PREFIXES) + text : text + prng.pick(SUFFIXES);
}

/** Made on first use: every start of the program would otherwise wait for them. */
let made: readonly Publisher[] | undefined;

export function anyPublisher(prng: Prng): Publisher {
  made ??= publishers();
  return prng.pick(made);
}

function publishers() {
  const names = TOWNS.flatMap((town) => TITLES.map((title) => `${town} ${title}`));
  const all = names.flatMap((name) => DOMAIN_SUFFIXES.map((suffix) => ({ name, suffix })));
  return all.map(({ name, suffix }, index) => {
    /** The registrable domain in Unicode; `asciiDomain`: in punycode. */
    const domain = `${name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')}.${suffix}`;
    // Some ids have fifteen digits, the maximum.
    const id = index % 50 === 49 ? 999_999_999_999_999 - index : 1000 + index * 37;
    // `print`: its newswire rows have `article_print`.
    return { id, name, domain, asciiDomain: domainToASCII(domain), print: index % 7 === 3 };
  });
}
