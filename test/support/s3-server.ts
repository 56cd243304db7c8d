/**
 * An S3 service in memory, for one bucket, as strict as the real ones: it computes each signature itself, and knows
 * `If-None-Match` and pages of lists. Faults are planted in it.
 */
import { createHash, createHmac } from 'node:crypto';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

export const BUCKET = 'bucket';
export const CREDENTIALS = { access: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
export const REGION = 'eu-test-1';

/**
 * What happens to a request: 503 before or after it is carried out, no answer, the connection cut before or after, 409
 * without any effect; 'other first' has another client create the object before.
 */
export type Fault = '503' | '503 after' | 'hang' | 'hang after' | 'cut' | 'cut after' | '409' | 'other first';

export interface S3Server {
  readonly endpoint: string;
  readonly objects: Map<string, Buffer>;
  /** Method and path of each request, as sent. */
  readonly requests: string[];
  /** For the next requests, one each, of one method if it is named: `PUT 503`. */
  readonly faults: (Fault | `${'PUT' | 'GET' | 'DELETE'} ${Fault}`)[];
  /** As old servers do. */
  ignoresIfNoneMatch: boolean;
  pageMax: number;
  sessionToken: string | undefined;
  close(): Promise<void>;
}

interface Reply {
  status: number;
  body?: string | Buffer;
}

export async function startS3Server(tls?: ServerOptions): Promise<S3Server> {
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    void respond(server, request, response);
  const listener = tls === undefined ? createHttp(handle) : createHttps(tls, handle);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const server: S3Server = {
    endpoint: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    objects: new Map(),
    requests: [],
    faults: [],
    ignoresIfNoneMatch: false,
    pageMax: 1000,
    sessionToken: undefined,
    close: async () => {
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
  return server;
}

async function respond(server: S3Server, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  server.requests.push(`${request.method} ${request.url}`);
  const [next] = server.faults;
  const isMeant = next !== undefined && (!/^[A-Z]/.test(next) || next.startsWith(`${request.method} `));
  const fault = isMeant ? server.faults.shift()?.replace(/^[A-Z]+ /, '') : undefined;
  if (fault === '503') return send(response, problem(503, 'SlowDown'));
  if (fault === '409') return send(response, problem(409, 'ConditionalRequestConflict'));
  if (fault === 'cut') return void request.socket.destroy();
  if (fault === 'hang') return;
  const why = signatureProblem(request, body, server.sessionToken);
  const reply = why === null ? carryOut(server, request, body, fault === 'other first') : problem(403, why);
  if (fault === '503 after') return send(response, problem(503, 'InternalError'));
  if (fault === 'cut after') return void request.socket.destroy();
  if (fault === 'hang after') return;
  send(response, reply);
}

function send(response: ServerResponse, { status, body = '' }: Reply): void {
  response.writeHead(status, { 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** It names the key, as real ones do: no message of a client may have it. */
function problem(status: number, code: string): Reply {
  const key = `<AWSAccessKeyId>${CREDENTIALS.access}</AWSAccessKeyId>`;
  return {
    status,
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>No.</Message>${key}</Error>`,
  };
}

function carryOut(server: S3Server, request: IncomingMessage, body: Buffer, isOtherFirst: boolean): Reply {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const [, bucket, ...parts] = path.split('/');
  if (bucket !== BUCKET) return problem(404, 'NoSuchBucket');
  const key = decodeURIComponent(parts.join('/'));
  const { objects } = server;
  if (isOtherFirst) objects.set(key, Buffer.from('of another'));
  if (key === '' && request.method === 'GET') return list(server, new Map(pairsOf(query)));
  if (request.method === 'PUT') {
    const isOnce = request.headers['if-none-match'] === '*' && !server.ignoresIfNoneMatch;
    if (isOnce && objects.has(key)) return problem(412, 'PreconditionFailed');
    objects.set(key, body);
    return { status: 200 };
  }
  if (request.method === 'DELETE') {
    objects.delete(key);
    return { status: 204 };
  }
  const found = objects.get(key);
  return found === undefined ? problem(404, 'NoSuchKey') : { status: 200, body: found };
}

function list(server: S3Server, query: ReadonlyMap<string, string>): Reply {
  if (query.get('list-type') !== '2') return problem(400, 'InvalidArgument');
  const token = query.get('continuation-token');
  const after =
    token === undefined
      ? (query.get('start-after') ?? '')
      : Buffer.from(token, 'base64').toString().slice('>>?'.length);
  const prefix = query.get('prefix') ?? '';
  const keys = [...server.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = keys.slice(0, Math.min(server.pageMax, Number(query.get('max-keys') ?? 1000)));
  const isTruncated = page.length < keys.length;
  const contents = page.map((key) => `<Contents><Key>${escaped(key)}</Key><Size>1</Size></Contents>`);
  const next = `<NextContinuationToken>${Buffer.from(`>>?${page.at(-1)}`).toString('base64')}</NextContinuationToken>`;
  const head = `<Name>${BUCKET}</Name><Prefix>${escaped(prefix)}</Prefix><IsTruncated>${isTruncated}</IsTruncated>`;
  return {
    status: 200,
    body: `<?xml version="1.0"?><ListBucketResult>${head}${isTruncated ? next : ''}${contents.join('')}</ListBucketResult>`,
  };
}

function escaped(text: string): string {
  return text.replace(/[&<>'"\r]|[^ -~]/gu, (character) => `&#x${character.codePointAt(0)?.toString(16)};`);
}

/** A plus sign stands for itself. */
function pairsOf(query: string): [string, string][] {
  if (query === '') return [];
  return query.split('&').map((pair) => {
    const [name = '', value = ''] = pair.split('=');
    return [decodeURIComponent(name), decodeURIComponent(value)];
  });
}

function strictlyEncoded(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9_.~-]/.test(character)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}

/** Signature version 4, as Amazon describes it. @returns what S3 calls the error; null if the request is signed rightly */
function signatureProblem(request: IncomingMessage, body: Buffer, token: string | undefined): string | null {
  const { headers } = request;
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const [, access, day = '', region = '', signedNames = '', signature] =
    form.exec(headers.authorization ?? '') ?? [];
  if (access === undefined) return 'AccessDenied';
  if (access !== CREDENTIALS.access) return 'InvalidAccessKeyId';
  if (region !== REGION) return 'AuthorizationHeaderMalformed';
  if (token !== undefined && headers['x-amz-security-token'] !== token) return 'InvalidToken';
  const names = signedNames.split(';');
  const mustBeSigned = Object.keys(headers).filter((name) => /^(host|if-none-match|x-amz-.*)$/.test(name));
  if (mustBeSigned.some((name) => !names.includes(name))) return 'AccessDenied';
  const sum = createHash('sha256').update(body).digest('hex');
  if (headers['x-amz-content-sha256'] !== sum) return 'XAmzContentSHA256Mismatch';
  const time = String(headers['x-amz-date']);
  const timeMs = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (!time.startsWith(day) || !(Math.abs(Date.now() - timeMs) < 900_000)) return 'RequestTimeTooSkewed';

  const [path = '', query = ''] = (request.url ?? '').split('?');
  const canonical = [
    request.method,
    path.split('/').map(decodeURIComponent).map(strictlyEncoded).join('/'),
    pairsOf(query)
      .map((pair) => pair.map(strictlyEncoded).join('='))
      .sort()
      .join('&'),
    ...names.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    signedNames,
    sum,
  ].join('\n');
  const digest = createHash('sha256').update(canonical).digest('hex');
  const text = ['AWS4-HMAC-SHA256', time, `${day}/${region}/s3/aws4_request`, digest].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (above, part) => createHmac('sha256', above).update(part).digest(),
    `AWS4${CREDENTIALS.secret}`,
  );
  return createHmac('sha256', key).update(text).digest('hex') === signature ? null : 'SignatureDoesNotMatch';
}
