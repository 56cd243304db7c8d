/**
 * Headlines in many languages and scripts, composed from invented phrases: a reader must recognize them as samples.
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
  fr: phrases(
    ' ',
    "La mairie du vallon|L'atelier des phares|Le conseil des écluses|La fanfare du quai|L'école du bocage|Le comité des moulins|La coopérative",
    "inaugure|reporte|défend|s'oppose à|célèbre|finance|redécouvre",
    "« la grande passerelle »|l'été des cerfs-volants|une œuvre oubliée|le marché aux châtaignes|la forêt brûlée|un théâtre à ciel ouvert|le pont, enfin",
  ),
  es: phrases(
    ' ',
    'El ayuntamiento del valle|La cofradía del faro|El taller de relojes|La escuela de la ribera|El comité de riegos|La orquesta del muelle',
    'aplaza|celebra|defiende|estrena|revisa|amplía',
    'el puente más largo|la fiesta de las cometas|un jardín para niños|la señal de niebla|el año del olivo|"la gran mudanza"',
  ),
  it: phrases(
    ' ',
    'Il comune della valle|La banda del molo|Il museo dei mulini|La scuola del bosco|Il consorzio delle fontane',
    'rinvia|inaugura|difende|festeggia|riscopre',
    "la funivia più lenta|l'orologio della città|il mercato delle castagne|una biblioteca perché sì|il ponte, di nuovo",
  ),
  'pt-BR': phrases(
    ' ',
    'A prefeitura do vale|O clube do farol|A escola da serra|O conselho das águas|A orquestra do cais',
    'adia|celebra|inaugura|defende|amplia',
    'a ponte de São Ninguém|o festival das pipas|a travessia do lago|um jardim para as crianças|a estação, até amanhã',
  ),
  pl: phrases(
    ' ',
    'Rada doliny|Muzeum młynów|Szkoła nad rzeką|Straż mostowa|Orkiestra z przystani',
    'odkłada|otwiera|świętuje|odbudowuje|chwali',
    'najdłuższą kładkę|jarmark latawców|„wielką przeprowadzkę”|stację pod wzgórzem|źródło w Żółtym Gaju',
  ),
  cs: phrases(
    ' ',
    'Obec v údolí|Muzeum mlýnů|Škola u řeky|Přístavní kapela|Rada vodáren',
    'odkládá|otevírá|slaví|hájí|přestavuje',
    'nejdelší lávku|trh s draky|„velké stěhování“|střechu tělocvičny|příběh žlutého koně',
  ),
  sv: phrases(
    ' ',
    'Hamnkontoret|Fyrföreningen|Byskolan|Kvarnmuseet|Sjöns färjelag',
    'öppnar|skjuter upp|firar|försvarar|bygger om',
    'länets längsta gångbro|drakfesten vid ån|en ny skolgård|”den stora flytten”|spårvägen, till slut',
  ),
  tr: phrases(
    ' ',
    'Vadi belediyesi|Fener derneği|Köy okulu|Değirmen müzesi|İskele orkestrası',
    'uçurtma şenliğini|en uzun köprüyü|yağmur çeşmesini|ışıklı çarşıyı|"büyük göçü"',
    'erteledi|yeniden açtı|savundu|kutladı|gözden geçirdi',
  ),
  el: phrases(
    ' ',
    'Ο δήμος της κοιλάδας|Το μουσείο των μύλων|Η σχολή του λιμανιού|Ο σύλλογος του φάρου',
    'αναβάλλει|εγκαινιάζει|γιορτάζει|υπερασπίζεται',
    'τη μεγάλη γέφυρα|τη γιορτή των χαρταετών|το παλιό ρολόι|τον «κήπο της βροχής»',
  ),
  ru: phrases(
    ' ',
    'Совет долины|Музей мельниц|Школа у реки|Оркестр пристани|Клуб маяка',
    'откладывает|открывает|празднует|защищает|изучает',
    'самый длинный мост|ярмарку воздушных змеев|«большой переезд»|ёлочный парк|подъём старых часов',
  ),
  ar: phrases(
    ' ',
    'مجلس الوادي|متحف الطواحين|نادي المنارة|مكتب الميناء',
    'يؤجل|يفتتح|يدعم|يناقش',
    'أطول جسر للمشاة|مهرجان الطائرات الورقية|خطة «الانتقال الكبير»|سوق الشتاء، مجددًا',
  ),
  he: phrases(
    ' ',
    'מועצת העמק|מוזיאון הטחנות|בית הספר שליד הנחל|תזמורת הרציף',
    'דנה מחדש על|שומרת על|נפרדת מן|חוגגת את',
    'הגשר הארוך|פסטיבל העפיפונים|„המעבר הגדול”|השעון בן 200 השנה',
  ),
  hi: phrases(
    ' ',
    'घाटी परिषद ने|चक्की संग्रहालय ने|नदी किनारे के स्कूल ने|बंदरगाह समिति ने',
    'सबसे लंबा पुल|पतंग उत्सव|पुरानी घड़ी का काम|नया बाग़',
    'टाल दिया|शुरू किया|फिर से खोला|मंज़ूर किया',
  ),
  ja: phrases(
    '',
    '谷の町議会が|灯台の会が|水車博物館、|港の学校で|夜行フェリー、',
    '「最長の歩道橋」を|凧まつりを|古い時計台を|冬の市場を|雨水の庭を',
    '再開|延期へ|見直し|きょう公開|2年ぶりに祝う',
  ),
  'zh-Hans': phrases(
    '',
    '山谷镇议会|灯塔协会|水磨博物馆|河畔学校|夜航渡轮公司',
    '推迟|重新开放|讨论|庆祝|扩建',
    '最长的人行桥|风筝节|“大搬迁”计划|冬季集市|二百年老钟',
  ),
  ko: phrases(
    ' ',
    '골짜기 의회,|등대 모임,|물레방아 박물관,|강변 학교,',
    "'가장 긴 다리'|연날리기 축제|오래된 시계탑|겨울 장터",
    '다시 연다|미루기로|두 배로 넓힌다|논의 시작',
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
