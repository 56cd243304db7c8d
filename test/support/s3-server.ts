/**
 * An S3 service in memory, for one bucket, as strict as the real ones: it checks each signature, and knows
 * `If-None-Match` and pages of lists. Faults are planted in it. On a real service: test/long/copy-s3-server.test.ts.
 */
import { createHash } from 'node:crypto';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import { AwsV4Signer } from 'aws4fetch';
import { listen } from './free-port.ts';

export const BUCKET = 'bucket';
export const CREDENTIALS = { access: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
export const REGION = 'eu-test-1';

/**
 * What happens to a request: 503 before or after it is carried out, no answer, the connection cut before or after, 409
 * without any effect; 'other first' has another client create the object before.
 */
export type Fault = '503' | '503 after' | 'hang' | 'hang after' | 'cut' | 'cut after' | '409' | 'other first';

export type S3Server = Awaited<ReturnType<typeof startS3Server>>;

/** What tests look at and change while it runs. */
const newState = () => ({
  objects: new Map<string, Buffer>(),
  /** Method and path of each request, as sent. */
  requests: [] as string[],
  /** For the next requests, one each, of one method if it is named: `PUT 503`. */
  faults: [] as (Fault | `${'PUT' | 'GET' | 'DELETE'} ${Fault}`)[],
  /** As old servers do. */
  ignoresIfNoneMatch: false,
  pageMax: 1000,
  sessionToken: undefined as string | undefined,
});
type State = ReturnType<typeof newState>;

interface Reply {
  status: number;
  body?: string | Buffer;
}

export async function startS3Server(tls?: ServerOptions) {
  const state = newState();
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    void respond(state, request, response);
  const listener = tls === undefined ? createHttp(handle) : createHttps(tls, handle);
  const port = await listen(listener);
  return Object.assign(state, {
    endpoint: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    async close(): Promise<void> {
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
    },
  });
}

async function respond(server: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
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
  const why = await signatureProblem(request, body, server.sessionToken);
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

function carryOut(server: State, request: IncomingMessage, body: Buffer, isOtherFirst: boolean): Reply {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const [, bucket, ...parts] = path.split('/');
  if (bucket !== BUCKET) return problem(404, 'NoSuchBucket');
  const key = decodeURIComponent(parts.join('/'));
  const { objects } = server;
  if (isOtherFirst) objects.set(key, Buffer.from('of another'));
  if (key === '' && request.method === 'GET') return list(server, new URLSearchParams(query));
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

/** Keys here have no characters that XML writes in another way. */
function list(server: State, query: URLSearchParams): Reply {
  if (query.get('list-type') !== '2') return problem(400, 'InvalidArgument');
  const token = query.get('continuation-token');
  const after =
    token === null
      ? (query.get('start-after') ?? '')
      : Buffer.from(token, 'base64').toString().slice('>>?'.length);
  const prefix = query.get('prefix') ?? '';
  const keys = [...server.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = keys.slice(0, server.pageMax);
  const isTruncated = page.length < keys.length;
  const contents = page.map((key) => `<Contents><Key>${key}</Key></Contents>`);
  const next = `<NextContinuationToken>${Buffer.from(`>>?${page.at(-1)}`).toString('base64')}</NextContinuationToken>`;
  const head = `<Name>${BUCKET}</Name><IsTruncated>${isTruncated}</IsTruncated>`;
  return {
    status: 200,
    body: `<?xml version="1.0"?><ListBucketResult>${head}${isTruncated ? next : ''}${contents.join('')}</ListBucketResult>`,
  };
}

/** @returns what S3 calls the error; null if the request is signed rightly */
async function signatureProblem(
  { method = '', url = '', headers }: IncomingMessage,
  body: Buffer,
  token: string | undefined,
): Promise<string | null> {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=/;
  const [, access, region, names = ''] = form.exec(headers.authorization ?? '') ?? [];
  if (access === undefined) return 'AccessDenied';
  if (access !== CREDENTIALS.access) return 'InvalidAccessKeyId';
  if (region !== REGION) return 'AuthorizationHeaderMalformed';
  if (token !== undefined && headers['x-amz-security-token'] !== token) return 'InvalidToken';
  const signed = names.split(';');
  const mustBeSigned = Object.keys(headers).filter((name) => /^(host|if-none-match|x-amz-.*)$/.test(name));
  if (mustBeSigned.some((name) => !signed.includes(name))) return 'AccessDenied';
  const sum = createHash('sha256').update(body).digest('hex');
  if (headers['x-amz-content-sha256'] !== sum) return 'XAmzContentSHA256Mismatch';
  const datetime = String(headers['x-amz-date']);
  const timeMs = Date.parse(datetime.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (!(Math.abs(Date.now() - timeMs) < 900_000)) return 'RequestTimeTooSkewed';
  const signer = new AwsV4Signer({
    ...{ method, url: `http://${headers.host}${url}`, service: 's3', region, datetime },
    ...{ accessKeyId: CREDENTIALS.access, secretAccessKey: CREDENTIALS.secret },
    headers: Object.fromEntries(signed.map((name) => [name, String(headers[name])])),
  });
  const { headers: expected } = await signer.sign();
  return expected.get('authorization') === headers.authorization ? null : 'SignatureDoesNotMatch';
}
