/**
 * The publishers' articles in which the agency's items are found. Each is drawn from the window and slot in which it first
 * occurred, so that a later row of the same detection can repeat or correct it.
 */
import type { ExportName } from '../detection/content-type.ts';
import { headline, type LanguageTag, slug } from './phrases.ts';
import { createPrng, type Prng, seedKey } from './prng.ts';
import { type Publisher, publishersByLanguage, SITES } from './publishers.ts';
import { numberedId, SLOTS_MAX } from './sources.ts';
import { timestamp } from './timestamps.ts';

export type Article = {
  id: number;
  url: string | null;
  domain: string | null;
  publishedAt: string | null;
  headline: string | null;
  /** The headline after a later correction. */
  headlineCorrected: string;
  publisherId: number | null;
  publisherName: string | null;
  /** Null: omitted by the export. */
  print: boolean | null;
  imageUrl: string | null;
  sentences: number;
};

const HOST_PREFIXES = ['www.', 'www.', 'www.', '', '', 'm.', 'news.', 'amp.regional.'];
const QUERIES = [
  '?utm_source=feed&utm_medium=rss',
  '?id=%C3%A4%C3%B6&page=2',
  '?ref=start#comments',
  '?a=1&a=2;b=3',
  '?q=caf%C3%A9+bar&sort=',
  '?redirect=https%3A%2F%2Fnews.sample-agency.example%2F',
  // Forbidden by RFC 3986, but common: a reader must encode it.
  '?tags=kite|bridge',
  '?filter[year]=2026',
];

export function createArticleMaker(seed: string, exportName: ExportName) {
  const prng = createPrng();
  const key = seedKey(seed, `${exportName} article`);
  const firstNumber = key[0] % SLOTS_MAX;
  const isText = exportName === 'newswire';
  const byLanguage = publishersByLanguage();

  /** @param foundSeconds when it was first found; it was published before */
  return (windowNumber: number, slot: number, language: LanguageTag, foundSeconds: number): Article => {
    prng.reseed(key, windowNumber, slot);
    const id = numberedId(windowNumber, firstNumber + slot);
    const publisher = prng.chance(0.12) ? null : prng.pick(byLanguage.get(language) ?? []);
    const print = isText && publisher?.print === true;
    const place = addressOf(prng, publisher, print, id);
    const hasHeadline = prng.chance(0.85);
    const title = headline(prng, language);
    const ageSeconds = prng.below(prng.chance(0.9) ? 5_400 : 400_000);
    return {
      id,
      url: place.url,
      domain: place.domain,
      publishedAt: prng.chance(0.3) ? null : timestamp(foundSeconds - ageSeconds),
      headline: hasHeadline ? title : null,
      headlineCorrected: `${headline(prng, language)} (${1 + prng.below(99)})`,
      publisherId: publisher?.id ?? null,
      publisherName: publisher === null || prng.chance(0.02) ? null : nameOf(prng, publisher),
      print: !isText || (!print && prng.chance(0.2)) ? null : print,
      imageUrl: isText || place.host === null || prng.chance(0.15) ? null : copyOfPhoto(prng, place.host, id),
      sentences: 2 + prng.below(60),
    };
  };
}

type Place = { url: string | null; domain: string | null; host: string | null };

function addressOf(prng: Prng, publisher: Publisher | null, print: boolean, id: number): Place {
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
  return { url: (prng.chance(0.95) ? 'https://' : 'http://') + host + path(prng, print, id), domain, host };
}

function path(prng: Prng, print: boolean, id: number): string {
  if (print) return `/epaper/${id}/page-${1 + prng.below(48)}`;
  const query = prng.chance(0.25) ? prng.pick(QUERIES) : '';
  switch (prng.below(6)) {
    case 0:
      return `/article/${id}${query}`;
    case 1:
      return `/${slug(prng)}/${slug(prng)}-${id}.html${query}`;
    case 2:
      return `/index.php${query === '' ? '?' : `${query.split('#', 1)[0]}&`}article=${id}`;
    case 3:
      return `/a/b/${slug(prng)},${id % 1000},${id}.htm${query}`;
    case 4:
      // Many feeds do not encode letters outside ASCII.
      return prng.chance(0.2) ? `/straße-ça-va/日本/${id}${query}` : `/n/${id}/${slug(prng)}/${query}`;
    default:
      return `/news/${slug(prng)}-${slug(prng)}/${id}${query}`;
  }
}

/** Some names have spaces around them, as in real databases. */
function nameOf(prng: Prng, publisher: Publisher): string {
  return prng.chance(0.03) ? ` ${publisher.name}  ` : publisher.name;
}

function copyOfPhoto(prng: Prng, host: string, id: number): string {
  return `https://${host}/media/${id}/${slug(prng)}-${320 * (1 + prng.below(5))}w.webp${prng.chance(0.3) ? '?crop=16:9&q=80' : ''}`;
}
