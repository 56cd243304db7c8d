/**
 * Headlines in four languages and three scripts, composed from invented phrases: a reader must recognize them as samples.
 */
import type { Prng } from './prng.ts';

type Phrases = { joint: string; parts: readonly [readonly string[], readonly string[], readonly string[]] };

function phrases(joint: string, first: string, second: string, third: string): Phrases {
  return { joint, parts: [first.split('|'), second.split('|'), third.split('|')] };
}

/** By language tag: the phrases of a headline, in the word order of the language. */
const PHRASES = {
  en: phrases(
    ' ',
    "Harbour town|Lighthouse keeper|The night ferry|Valley council|Beekeepers' union|Old tramway|Orchard festival|Tide office|Village band",
    'reopens|says "no" to|doubles the budget for|postpones|votes on|welcomes|loses track of|rebuilds',
    'the longest footbridge|a new school roof|its 200-year-old clock|the winter market|10,000 paper kites|plans for a cable car|the spring regatta, again|a £3m pump house',
  ),
  de: phrases(
    ' ',
    'Die Talgemeinde|Das Hafenamt|Der Sägewerksverein|Die Brückenwacht|Das Mühlenmuseum|Die Fährgenossenschaft|Der Gemeinderat|Die Sternwarte',
    'verschiebt|eröffnet|prüft|feiert|bezweifelt|übernimmt|kürzt|verteidigt',
    'den „großen“ Umbau|die Straße zum Moor|das Frühlingsfest|eine zweite Seilbahn|die Schlüsselübergabe|den Lärmschutz, endlich|das Käsemuseum|500 neue Bäume',
  ),
  ar: phrases(
    ' ',
    'مجلس الوادي|متحف الطواحين|نادي المنارة|مكتب الميناء',
    'يؤجل|يفتتح|يدعم|يناقش',
    'أطول جسر للمشاة|مهرجان الطائرات الورقية|خطة «الانتقال الكبير»|سوق الشتاء، مجددًا',
  ),
  ja: phrases(
    '',
    '谷の町議会が|灯台の会が|水車博物館、|港の学校で|夜行フェリー、',
    '「最長の歩道橋」を|凧まつりを|古い時計台を|冬の市場を|雨水の庭を',
    '再開|延期へ|見直し|きょう公開|2年ぶりに祝う',
  ),
} satisfies Record<string, Phrases>;

export type LanguageTag = keyof typeof PHRASES;

/** What desks and publishing systems add to a headline. */
const PREFIXES = 'LIVE: |+++ |🔴 |📷 |[Update] |-5 °C: |#news |👩‍🚒 '.split('|');
const SUFFIXES = [
  ' – video',
  ' 🎉🪁',
  ' (2/3)',
  ' | Local',
  '…',
  ' <b>',
  ' & more',
  ' \\o/',
  "; it's official",
  '\u200f',
  '\u00a0»',
  ' Cafe\u0301',
  '\tPHOTOS',
  '\nUpdated',
];

/** English in every language: an address must not depend on a transliteration. */
const SLUGS =
  'bridge-opens|kite-festival|harbour-clock|winter-market|valley-vote|school-roof|old-tramway|long-ferry-night|mill-museum|rain-garden|spring-regatta|cable-car'.split(
    '|',
  );

/** One headline in eight has characters that a careless parser mishandles. */
export function headline(prng: Prng, language: LanguageTag): string {
  const { joint, parts } = PHRASES[language];
  const text = prng.pick(parts[0]) + joint + prng.pick(parts[1]) + joint + prng.pick(parts[2]);
  const dress = prng.below(1024);
  if (dress >= 128) return text;
  if (dress < 1) return `${text}. `.repeat(20).trim();
  if (dress < 20) return `"${text}"`;
  return dress < 70 ? prng.pick(PREFIXES) + text : text + prng.pick(SUFFIXES);
}

/** For the path of an article's address. */
export function slug(prng: Prng): string {
  return prng.pick(SLUGS);
}
