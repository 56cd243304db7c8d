/** Generates valid and invalid requests from the OpenAPI document and a list of odd values. */
import { OPERATIONS } from '../../../src/openapi/operations.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { words } from '../../support/words.ts';
import type { Target } from './target.ts';

export interface FuzzRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer | null;
}

/** Existing keys, ids, cursors and photos. */
export type FuzzFacts = Target['facts'];

const METHODS = words(`
  GET GET GET GET GET GET HEAD POST PUT DELETE PATCH OPTIONS TRACE`);
const PARAMETERS = OPERATIONS.flatMap(({ parameters = [] }) => parameters);
const NAMES = [...new Set(PARAMETERS.map(({ name }) => name))];

const ODDITIES = [
  ...words(`
    0 -1 +1 01 1.0 1e3 0x10 NaN null true 9007199254740993 , 1,,2 ,1 1,2,3,4,5 %00 ünïcödé 💥 ../../etc/passwd
    __proto__ constructor toString hasOwnProperty % %zz %ff %c0%af %ed%a0%80 * [] {} $& $1 text image off max v1 V1
    example.com https://example.com/ http://user@example.com:80/x?y#z xn-- UTC europe/berlin Etc/GMT+14 +02:00`),
  ...['', ' ', "' OR 1=1 --", '"; DROP TABLE detection;'],
  ...['\u0000', '\u0001', '\n', '\r\nX-Injected: yes', '\ud800'],
  ...['\u202e', '9'.repeat(15), '9'.repeat(16), '1'.repeat(400), 'a'.repeat(3000)],
];

const TIMES = [
  '2026-11-21T10:00:00 02:00',
  ...words(`
    2026-02-30 2026-11-21 0000-01-01 9999-12-31 10000-01-01 -000001-01-01 2026-11-21T10:00:00Z
    2026-11-21T10:00:00.123Z 2026-11-21T10:00:00+02:00 2026-11-21T24:00:00Z 2026-11-21T23:59:60Z
    2026-11-21t10:00:00z 2026-11-21T10:00Z 2026-11-21T10:00:00+24:00`),
];

const HEADER_NAMES = words(`
  If-None-Match If-Match If-Modified-Since If-Range Range Accept Accept-Encoding Accept-Language Origin
  Cookie X-Forwarded-For Forwarded X-Request-Id X-HTTP-Method-Override Content-Type Cache-Control
  Authorization`);

const USUAL_HEADERS = [
  ['If-None-Match', '*'],
  ['Range', 'bytes=0-3'],
] as const;

const HEADER_VALUES = [
  ...words(`
    * "" "x" W/"x" "x bytes=0- bytes=-1 bytes=5-1 bytes=0-0,2-3 bytes=999999999999999999- items=0-1 127.0.0.1 ,,,,
    application/json Bearer \u00ff\u00fe`),
  ...['"a", W/"b" , *', '::1, unknown, 999.1.1.1', 'gzip, br;q=0, *', 'Sat, 21 Nov 2026 10:00:00 GMT'],
  ...['x'.repeat(5000), 'Bearer  x', 'Basic Og==', 'Basic !!!'],
];

/** Headers and parameters where a secret does not belong. */
const MISPLACED_HEADERS = words(`
  X-Request-Id Cookie Referer User-Agent X-Forwarded-For Origin If-None-Match Accept X-Api-Key
  Access-Control-Request-Headers`);
const MISPLACED_PARAMETERS = ['access_token', 'key', 'cursor', 'since', 'fields', 'subscription_id'] as const;

export function makeRequest(prng: Prng, facts: FuzzFacts): FuzzRequest {
  const request = prng.chance(0.15) ? tokenRequest(prng, facts) : plainRequest(prng, facts);
  return prng.chance(0.06) ? withMisplaced(prng, facts, request) : request;
}

/** The request with a key, a token or another secret where it does not belong. */
function withMisplaced(prng: Prng, { credentials, misplaced }: FuzzFacts, request: FuzzRequest): FuzzRequest {
  // Keys and tokens may also be changed; other secrets are recognized only at full length.
  const secret = prng.chance(0.5)
    ? prng.pick(misplaced)
    : mutated(prng, prng.pick(credentials).replace('Bearer ', ''), 0.3);
  const inTarget = targetSafe(encodeLoosely(secret));
  const [path = '', query] = request.target.split('?', 2);
  switch (prng.below(4)) {
    case 0: {
      const added = [prng.pick(MISPLACED_HEADERS), headerSafe(secret)] as const;
      return { ...request, headers: [...request.headers, added] };
    }
    case 1: {
      const added = `${prng.pick(MISPLACED_PARAMETERS)}=${inTarget}`;
      return { ...request, target: `${path}?${query === undefined ? added : `${query}&${added}`}` };
    }
    case 2:
      return { ...request, target: `${prng.pick([path, '', '/v1/detections', '/photos'])}/${inTarget}` };
    default:
      return { ...request, body: Buffer.from(`grant_type=${secret}&${secret}=${secret}`) };
  }
}

function plainRequest(prng: Prng, facts: FuzzFacts): FuzzRequest {
  const path = makePath(prng, facts);
  const query = makeQuery(prng, facts, path);
  const headers: [string, string][] = [];
  if (prng.chance(0.85)) headers.push(['Authorization', makeCredential(prng, facts)]);
  if (prng.chance(0.15)) headers.push([...prng.pick(USUAL_HEADERS)]);
  while (prng.chance(0.3)) {
    const value = prng.chance(0.7) ? prng.pick(HEADER_VALUES) : headerSafe(prng.pick(ODDITIES));
    headers.push([prng.pick(HEADER_NAMES), value]);
  }
  return {
    method: prng.pick(METHODS),
    target: targetSafe(query === '' ? path : `${path}?${query}`),
    headers,
    body: prng.chance(0.05) ? Buffer.from(prng.pick(ODDITIES)) : null,
  };
}

function makePath(prng: Prng, { ids, photo }: FuzzFacts): string {
  const template = prng.pick(OPERATIONS).path;
  const photoPath = photo.split('?')[0] ?? '';
  const segment = prng.chance(0.5)
    ? prng.pick([...ids, photoPath.slice('/photos/'.length)])
    : prng.pick(ODDITIES).replaceAll('?', '');
  const path = template.replace(/\{\w+\}$/, prng.chance(0.5) ? encodeLoosely(segment) : segment);
  if (!prng.chance(0.12)) return path;
  return prng.pick([
    `${path}/`,
    `/${path}`,
    path.toUpperCase(),
    path.replace('/v1', '/v2'),
    path.replaceAll('/', '//'),
    `${path}/..`,
    `/./${path.slice(1)}`,
    path.replace('e', '%65'),
    `${path};a=b`,
    `${path}#x`,
    `${path}%00`,
    `${path}\\`,
    '/',
    '/favicon.ico',
    `/${prng.pick(ODDITIES).replaceAll('?', '')}`,
  ]);
}

function makeQuery(prng: Prng, facts: FuzzFacts, path: string): string {
  if (path.startsWith('/photos/') && prng.chance(0.5)) return facts.photo.split('?')[1] ?? '';
  const parts: string[] = [];
  const operation = OPERATIONS.find((one) => one.path === path);
  if (prng.chance(0.8)) parts.push(...usualParts(prng, facts, path));
  const names = operation === undefined ? NAMES : (operation.parameters ?? []).map(({ name }) => name);
  while (prng.chance(0.55)) {
    const name = names.length > 0 && prng.chance(0.9) ? prng.pick(names) : prng.pick([...NAMES, ...ODDITIES]);
    const value = makeValue(prng, facts, name);
    parts.push(
      prng.chance(0.95) ? `${encodeLoosely(name)}=${prng.chance(0.7) ? encodeLoosely(value) : value}` : name,
    );
  }
  return parts.join(prng.chance(0.97) ? '&' : '&&');
}

/** Valid parameters for this path. */
function usualParts(prng: Prng, { nowMs, cursors }: FuzzFacts, path: string): string[] {
  const ago = (ms: number) => new Date(nowMs - ms).toISOString();
  if (path === '/v1/detections/changes')
    return [prng.chance(0.5) ? `since=${ago(prng.below(2_600_000_000))}` : `cursor=${prng.pick(cursors)}`];
  if (path !== '/v1/detections') return [];
  const days = 1 + prng.below(20);
  return [`from=${ago(days * 86_400_000).slice(0, 10)}`, `to=${ago(0).slice(0, 10)}`];
}

function makeValue(prng: Prng, facts: FuzzFacts, name: string): string {
  if (prng.chance(0.45)) return prng.pick(ODDITIES);
  if (prng.chance(0.15)) return prng.pick(TIMES);
  if (prng.chance(0.1)) return Array.from({ length: prng.below(60) }, (_, at) => `${at + 1}`).join(',');
  if (prng.chance(0.1)) return mutated(prng, prng.pick(facts.cursors));
  const examples = PARAMETERS.filter((one) => one.name === name);
  return examples.length === 0 ? prng.pick(ODDITIES) : String(prng.pick(examples).example);
}

function makeCredential(prng: Prng, { credentials, client }: FuzzFacts): string {
  if (prng.chance(0.85)) return prng.pick(credentials);
  if (prng.chance(0.5)) return headerSafe(mutated(prng, prng.pick(credentials)));
  return prng.pick([
    '',
    'Bearer',
    `bearer ${client.id}`,
    `Basic ${btoa(`${client.id}:${client.secret}`)}`,
    `Bearer ${'x'.repeat(2000)}`,
    'Negotiate abc',
  ]);
}

function tokenRequest(prng: Prng, { client }: FuzzFacts): FuzzRequest {
  const fields = [
    `grant_type=${prng.chance(0.85) ? 'client_credentials' : encodeLoosely(prng.pick(ODDITIES))}`,
    ...(prng.chance(0.7) ? [`client_id=${client.id}`] : []),
    ...(prng.chance(0.7) ? [`client_secret=${client.secret}`] : []),
    ...(prng.chance(0.4) ? [`scope=${encodeLoosely(prng.pick(['detections:read', ...ODDITIES]))}`] : []),
    ...(prng.chance(0.15) ? [`${encodeLoosely(prng.pick(ODDITIES))}=${prng.pick(ODDITIES)}`] : []),
    ...(prng.chance(0.08) ? [`padding=${'x'.repeat(3500 + prng.below(1200))}`] : []),
  ];
  const form = fields.join('&');
  const type = prng.chance(0.85) ? 'application/x-www-form-urlencoded' : headerSafe(prng.pick(HEADER_VALUES));
  const headers: [string, string][] = [['Content-Type', type]];
  if (prng.chance(0.3))
    headers.push(['Authorization', `Basic ${mutated(prng, btoa(`${client.id}:${client.secret}`), 0.3)}`]);
  return {
    method: prng.chance(0.95) ? 'POST' : prng.pick(METHODS),
    target: prng.chance(0.95) ? '/oauth/token' : '/oauth/token?grant_type=client_credentials',
    headers,
    body: Buffer.from(prng.chance(0.9) ? form : mutated(prng, form), prng.chance(0.95) ? 'utf8' : 'latin1'),
  };
}

/** Changes, drops or duplicates characters. */
function mutated(prng: Prng, text: string, probability = 1): string {
  if (text === '' || !prng.chance(probability)) return text;
  const at = prng.below(text.length);
  const character = String.fromCharCode(33 + prng.below(94));
  return prng.pick([
    `${text.slice(0, at)}${character}${text.slice(at + 1)}`,
    text.slice(0, at) + text.slice(at + 1),
    text.slice(0, at) + character + text.slice(at),
    text.slice(0, at),
    text + text,
    text.toUpperCase(),
  ]);
}

const encodeLoosely = (text: string): string => encodeURIComponent(text.toWellFormed());

/** Encodes characters that would end the request line early; malformed requests have those. */
function targetSafe(text: string): string {
  const bytes = Buffer.from(text.toWellFormed()).toString('latin1');
  return bytes.replace(/[^\x21-\x7e]/g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function headerSafe(text: string): string {
  return Buffer.from(text.toWellFormed())
    .toString('latin1')
    .replace(/[^\x20-\x7e\x80-\xff]/g, '');
}
