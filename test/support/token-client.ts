/** Sends requests to POST /oauth/token, and checks of the responses what checked-fetch.ts leaves open. */
import assert from 'node:assert/strict';
import type { TestServer } from './server.ts';

export const FORM = 'application/x-www-form-urlencoded';
export const GRANT = { grant_type: 'client_credentials' };

export type TokenClient = Readonly<{ id: string; key: string; secret: string }>;

export function makeClient(at: TestServer, terms: Parameters<TestServer['makeKey']>[0] = {}): TokenClient {
  const { id, key } = at.makeKey(terms);
  return { id, key, secret: key.slice(-52) };
}

/** A request body with the client id and secret. */
export function inBody({ id, secret }: { id: string; secret: string }, more: Record<string, string> = {}) {
  return { ...GRANT, client_id: id, client_secret: secret, ...more };
}

export function basic(userPass: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(userPass).toString('base64')}` };
}

export function postToken(
  at: Pick<TestServer, 'url'>,
  body: Record<string, string> | string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const text = isRaw ? body : new URLSearchParams(body).toString();
  return fetch(`${at.url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': FORM, ...headers },
    body: text,
  });
}

export async function granted(response: Response): Promise<{ access_token: string; scope: string }> {
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

/** @returns the description */
export async function refused(
  response: Response,
  status: number,
  error: string,
  challenge = false,
): Promise<string> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('www-authenticate'), challenge ? 'Basic realm="svc-data"' : null);
  const body = JSON.parse(text);
  assert.deepEqual(Object.keys(body), ['error', 'error_description']);
  assert.equal(body.error, error);
  // RFC 6749, 5.2: these characters only.
  assert.match(body.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]{5,}$/);
  return body.error_description;
}

/** Requests to a server, and those that it refuses in the form of OAuth. */
export function tokenCalls(at: Pick<TestServer, 'url'>) {
  const post = (body: Parameters<typeof postToken>[1], headers: Record<string, string> = {}) =>
    postToken(at, body, headers);
  return {
    post,
    /** A refusal of credentials in HTTP Basic has its challenge. @returns the description */
    async refusal(status: number, error: string, ...sent: Parameters<typeof post>) {
      const isBasic = /^basic/i.test(sent[1]?.authorization ?? '');
      return refused(await post(...sent), status, error, status === 401 && isBasic);
    },
  };
}

/** @returns the title */
export async function problem(at: TestServer, response: Response, status: number, code: string) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  const { type, title }: { type: string; title: string } = JSON.parse(text);
  assert.equal(type, `${at.url}/errors/${code}`);
  return title;
}
