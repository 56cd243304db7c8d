/**
 * The client credentials grant (POST /oauth/token; RFC 6749, 2.3.1, 3.2, 4.4): reads the form, and the client's
 * credentials from it or from HTTP Basic, and issues a token for a proven key that may be used.
 */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { unlessError } from '../refused.ts';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { whyNotUsable } from './credential-check.ts';
import { formatKey, hashKey, isKeyId, isKeySecret, parseKey } from './key-form.ts';
import { keyStatus } from './keys.ts';
import { SCOPES, type Scope } from './scopes.ts';
import type { AccessTokens } from './token.ts';

/** Not yet verified; a missing part is empty. */
type ClientCredentials = Readonly<Record<'id' | 'secret', string>>;

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;[^,]*)?$/i;
/** Also after another credential: Node joins repeated headers with a comma. */
const IS_BASIC = /(?:^|,[ \t]*)basic(?:[ \t,]|$)/i;
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const PARAMETERS = ['grant_type', 'client_id', 'client_secret', 'scope'];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @returns the request, or what is invalid in it, as a sentence */
export function readTokenRequest(headers: IncomingHttpHeaders, body: Uint8Array) {
  const { authorization, 'content-type': contentType } = headers;
  if (contentType === undefined || !FORM_TYPE.test(contentType))
    return 'The request body must be a form. Send it with Content-Type: application/x-www-form-urlencoded';
  const text = unlessError(null, () => utf8.decode(body));
  if (text === null || decodePart(text) === null)
    return 'The request body is not a valid form: it must be percent-encoded UTF-8.';
  // URLSearchParams would ignore a question mark at the very beginning.
  const parameters = [...new URLSearchParams(`&${text}`)];
  const values = new Map(parameters);
  const seen = new Set<string>();
  const twice = parameters.find(([name]) => seen.size === seen.add(name).size);
  if (twice !== undefined)
    return `${PARAMETERS.includes(twice[0]) ? twice[0] : 'A parameter'} must not be repeated.`;
  // A parameter without a value counts as missing (RFC 6749, 3.1).
  const value = (name: string) => values.get(name) ?? '';
  let client: ClientCredentials | null = { id: value('client_id'), secret: value('client_secret') };
  if (isBasic(authorization)) {
    if (client.id !== '' || client.secret !== '')
      return 'The client credentials are both in the body and in the Authorization header. Send them only once.';
    client = parseBasic(authorization);
  }
  if (client === null)
    return 'The Basic credentials are malformed. Send the base64 encoding of <key id>:<secret>.';
  return { grant_type: value('grant_type'), client, scope: value('scope') };
}

export const isBasic = (authorization: string | undefined): authorization is string =>
  authorization !== undefined && IS_BASIC.test(authorization);

/** Id and secret, which are form-encoded separately (RFC 6749, 2.3.1); null if malformed. */
function parseBasic(authorization: string): ClientCredentials | null {
  const [, base64 = ''] = BASIC.exec(authorization.trim()) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  // The decoder ignores missing padding and surplus bits.
  const text = bytes.toString('base64') === base64 ? unlessError(null, () => utf8.decode(bytes)) : null;
  const colon = text?.indexOf(':') ?? -1;
  if (text === null || colon < 0) return null;
  const id = decodePart(text.slice(0, colon));
  const secret = decodePart(text.slice(colon + 1));
  return id === null || secret === null ? null : { id, secret };
}

/** Percent-decodes a name or value, with `+` for a space; null if that is not valid UTF-8. */
const decodePart = (text: string) => unlessError(null, () => decodeURIComponent(text.replaceAll('+', ' ')));

const MISSING =
  'The client credentials are missing. Send client_id and client_secret in the body, or use HTTP Basic.';

/** One text for every reason: it must not reveal which key ids exist, or whether a key was revoked. */
export const CLIENT_NOT_VALID =
  'The client credentials are not valid: the id or secret is wrong, or the key is expired or revoked.';

/**
 * @param scope space-separated; empty: all scopes of the key
 * @param address of the client, which the key may restrict
 * @throws Refused `unavailable`
 */
export function grantToken(
  { store, tokens }: { readonly store: AccessReader; readonly tokens: AccessTokens },
  { client, scope }: { readonly client: ClientCredentials; readonly scope: string },
  address: string,
  nowMs: number,
) {
  const invalidClient = (description: string) => ({ kind: 'invalid_client', description }) as const;
  if (client.id === '' || client.secret === '') return invalidClient(MISSING);
  const key = provenKey(store, client);
  if (key === null || keyStatus(key, nowMs) !== 'active') return invalidClient(CLIENT_NOT_VALID);
  const refusal = whyNotUsable(key, address);
  if (refusal !== null) return invalidClient(refusal);
  const scopes = grantedScopes(key.scopes, scope);
  if (scopes === null) {
    const has = key.scopes.length === 0 ? 'none' : key.scopes.join(' ');
    const description = `scope: must be a space-separated subset of the scopes of the key. The key has: ${has}`;
    return { kind: 'invalid_scope', description } as const;
  }
  return { kind: 'granted', key_id: key.id, access_token: tokens.issue(key, scopes, nowMs), scopes } as const;
}

function provenKey(store: AccessReader, { id, secret }: ClientCredentials): StoredKey | null {
  const whole = parseKey(secret);
  if (!isKeyId(id) || (whole === null ? !isKeySecret(secret) : whole.id !== id)) return null;
  return store.findKey(id, ({ prefix, hash }) =>
    timingSafeEqual(hash, hashKey(whole === null ? formatKey({ prefix, id, secret }) : secret)),
  );
}

/** In the order of SCOPES, each once; null if the key lacks one of them. */
function grantedScopes(has: readonly Scope[], asked: string): readonly Scope[] | null {
  const names: readonly string[] = asked === '' ? has : asked.split(' ');
  const scopes = SCOPES.filter((scope) => has.includes(scope) && names.includes(scope));
  return names.every((name) => scopes.some((scope) => scope === name)) ? scopes : null;
}
