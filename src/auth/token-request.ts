/**
 * Parses a token request: the form, and the client's credentials from the form or from HTTP Basic. Pure (RFC 6749,
 * 2.3.1, 3.2 and 4.4.2).
 */

/** Not yet verified; a missing part is empty. */
export interface ClientCredentials {
  readonly id: string;
  readonly secret: string;
}

export interface TokenRequest {
  /** Empty if missing. */
  readonly grant_type: string;
  readonly client: ClientCredentials;
  /** Space-separated scopes; empty: all scopes of the key. */
  readonly scope: string;
}

export type ReadTokenRequest =
  | { readonly kind: 'request'; readonly request: TokenRequest }
  | { readonly kind: 'invalid'; readonly description: string };

interface RequestParts {
  readonly contentType: string | undefined;
  readonly authorization: string | undefined;
  readonly body: Uint8Array;
}

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;[^,]*)?$/i;
/** Also after another credential: Node joins repeated headers with a comma. */
const IS_BASIC = /(?:^|,[ \t]*)basic(?:[ \t,]|$)/i;
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const PARAMETERS = ['grant_type', 'client_id', 'client_secret', 'scope'];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readTokenRequest({ contentType, authorization, body }: RequestParts): ReadTokenRequest {
  if (contentType === undefined || !FORM_TYPE.test(contentType)) {
    return invalid(
      'The request body must be a form. Send it with Content-Type: application/x-www-form-urlencoded',
    );
  }
  const form = parseForm(body);
  if (form === null)
    return invalid('The request body is not a valid form: it must be percent-encoded UTF-8.');
  if (form.kind === 'twice') {
    return invalid(`${PARAMETERS.includes(form.name) ? form.name : 'A parameter'} must not be repeated.`);
  }
  const { values } = form;
  // A parameter without a value counts as missing (RFC 6749, 3.1).
  const value = (name: string) => values.get(name) ?? '';
  let client: ClientCredentials | null = { id: value('client_id'), secret: value('client_secret') };
  if (isBasic(authorization)) {
    if (client.id !== '' || client.secret !== '') {
      return invalid(
        'The client credentials are both in the body and in the Authorization header. Send them only once.',
      );
    }
    client = parseBasic(authorization);
  }
  if (client === null) {
    return invalid('The Basic credentials are malformed. Send the base64 encoding of <key id>:<secret>.');
  }
  return {
    kind: 'request',
    request: { grant_type: value('grant_type'), client, scope: value('scope') },
  };
}

/** Whether the client uses HTTP Basic, well formed or not. */
export function isBasic(authorization: string | undefined): authorization is string {
  return authorization !== undefined && IS_BASIC.test(authorization);
}

/** Id and secret, which are form-encoded separately (RFC 6749, 2.3.1); null if malformed. */
function parseBasic(authorization: string): ClientCredentials | null {
  const [, base64 = ''] = BASIC.exec(authorization.trim()) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  // The decoder ignores missing padding and surplus bits.
  const text = bytes.toString('base64') === base64 ? decodeUtf8(bytes) : null;
  const colon = text?.indexOf(':') ?? -1;
  if (text === null || colon < 0) return null;
  const id = decodePart(text.slice(0, colon));
  const secret = decodePart(text.slice(colon + 1));
  return id === null || secret === null ? null : { id, secret };
}

type Form =
  | { readonly kind: 'form'; readonly values: ReadonlyMap<string, string> }
  | { readonly kind: 'twice'; readonly name: string };

/** Null if it is not valid percent-encoded UTF-8, which takes precedence over a repeated parameter. */
function parseForm(body: Uint8Array): Form | null {
  const text = decodeUtf8(body);
  if (text === null || decodePart(text) === null) return null;
  const values = new Map<string, string>();
  let twice: string | null = null;
  // It would ignore a question mark at the very beginning.
  for (const [name, value] of new URLSearchParams(`&${text}`)) {
    if (values.has(name)) twice ??= name;
    values.set(name, value);
  }
  return twice === null ? { kind: 'form', values } : { kind: 'twice', name: twice };
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** Percent-decodes a name or value, with `+` for a space; null if that is not valid UTF-8. */
function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

function invalid(description: string): ReadTokenRequest {
  return { kind: 'invalid', description };
}
