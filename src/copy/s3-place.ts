/**
 * A place that is a bucket of an S3 service, or what begins with a prefix in it.
 *
 * An object is created with `If-None-Match: *`, which the service decides. Where its answer was lost, and it then says that
 * there is one, the object is read back: what is there tells who created it.
 */
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { paced } from '../pace.ts';
import { errorCode, failed, reasonOf } from '../refused.ts';
import { BUCKET_ADDRESS, isName, type Place, type PlaceSettings, Unreachable } from './place.ts';

/** Until the answer begins, and again until it is complete; besides a second for each MiB that is sent or received. */
const LIMIT_MS = 30_000;
const RETRIES = 2;
const PAUSE_MS = 500;

/** `code`: what S3 calls the error; empty if there is none. */
type Answer = Readonly<{ status: number; code: string; body: Buffer }>;

/** @param limitMs tests change it @throws Refused `failed` if the address, the settings or the credentials cannot be used */
export async function openS3Place(to: string, settings: PlaceSettings, limitMs = LIMIT_MS): Promise<Place> {
  const { bucket, prefix } = addressOf(to, settings);
  const credentials = await credentialsOf(settings.credentials);
  const objectUrl = (name: string) => `${bucket}/${prefix}${name}`;

  /** @returns Unreachable if it is not known what the service did */
  async function ask(method: string, url: string, body = new Uint8Array(), headers = {}) {
    const sum = Buffer.from(await crypto.subtle.digest('SHA-256', body)).toString('hex');
    const signed = await new AwsV4Signer({
      ...credentials,
      ...{ method, url, service: 's3', region: settings.region },
      headers: { ...headers, 'x-amz-content-sha256': sum },
    }).sign();
    const controller = new AbortController();
    const limit = (bytes: number) => setTimeout(() => controller.abort(), limitMs + bytes / 1024);
    let timer = limit(body.length);
    try {
      const response = await fetch(signed.url, {
        ...{ method, headers: signed.headers, redirect: 'manual', signal: controller.signal },
        ...(method === 'PUT' ? { body } : {}),
      });
      clearTimeout(timer);
      timer = limit(Number(response.headers.get('content-length')));
      const received = Buffer.from(await response.arrayBuffer());
      const { status } = response;
      const code = status < 300 ? '' : (/<Code>(\w+)</.exec(received.toString('latin1'))?.[1] ?? '');
      const answer: Answer = { status, body: received, code };
      return status >= 500 || status === 429 ? notDone(to, answer) : answer;
    } catch (error) {
      return notAnswered(to, controller.signal.aborted ? new Error('no answer in time') : error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** For what may be asked twice. @returns also whether it may have been done before, without an answer */
  async function askAgain(...asked: Parameters<typeof ask>) {
    for (let retries = 0, isUnsure = false; ; retries++) {
      const answer = await ask(...asked);
      const isUnknown = answer instanceof Unreachable;
      // 409: another request for this object was under way, and this one did nothing.
      if (!isUnknown && answer.status !== 409) return { ...answer, isUnsure };
      isUnsure ||= isUnknown;
      if (retries === RETRIES) throw isUnknown ? answer : notDone(to, answer);
      await sleep(paced(PAUSE_MS * 2 ** retries));
    }
  }

  async function read(name: string): Promise<Buffer | null> {
    const answer = await askAgain('GET', objectUrl(name));
    if (answer.status === 404 && answer.code === 'NoSuchKey') return null;
    return requireDone(to, answer).body;
  }

  return {
    text: to,
    async create(name, content) {
      const body = new Uint8Array(content);
      const answer = await askAgain('PUT', objectUrl(name), body, { 'if-none-match': '*' });
      if (answer.status !== 412) return requireDone(to, answer) === answer;
      if (!answer.isUnsure) return false;
      const found = await read(name);
      if (found === null)
        throw new Unreachable(`It is not known who created ${name} in ${to}: it is gone again.`);
      return found.equals(content);
    },
    async list(start, after) {
      const found: string[] = [];
      const common = { 'list-type': '2', prefix: `${prefix}${start}` };
      let more: Record<string, string> = after === '' ? {} : { 'start-after': `${prefix}${after}` };
      for (;;) {
        const query = new URLSearchParams({ ...common, ...more });
        const page = requireDone(to, await askAgain('GET', `${bucket}?${query}`)).body.toString();
        for (const [, key = ''] of page.matchAll(/<Key>([^<]*)<\/Key>/g))
          found.push(key.slice(prefix.length));
        if (!/<IsTruncated>true</.test(page)) break;
        const [, token] = /<NextContinuationToken>([^<]+)</.exec(page) ?? [];
        if (token === undefined || token === more['continuation-token'])
          throw new Unreachable(`${to} lists a part of its objects, and not how to go on. ${CHECK_SERVICE}.`);
        more = { 'continuation-token': token };
      }
      // A service may have other objects there, and some list in another order.
      return found.filter((name) => isName(name) && name > after).sort();
    },
    read,
    async delete(name) {
      const answer = await askAgain('DELETE', objectUrl(name));
      if (answer.code !== 'NoSuchKey') requireDone(to, answer);
    },
  };
}

/** @returns the URL of the bucket, and the beginning of each key in it */
function addressOf(to: string, { endpoint, region }: PlaceSettings): { bucket: string; prefix: string } {
  const [, name, prefix = ''] = BUCKET_ADDRESS.exec(to) ?? [];
  if (name === undefined)
    throw failed(
      `${JSON.stringify(to)} is not the address of a bucket. Write s3://bucket/prefix, and the prefix with letters, digits, - and _.`,
    );
  const host = `s3.${region}.amazonaws.com`;
  // Amazon wants the bucket in the host name, where its certificate does not cover a name with dots.
  const amazon = name.includes('.') ? `https://${host}/${name}` : `https://${name}.${host}`;
  const url = URL.parse(endpoint || amazon);
  if (!url || !/^https?:$/.test(url.protocol) || url.username + url.password + url.search + url.hash !== '')
    throw failed(
      'the endpoint of the S3 service is not an address. Write https://HOST or https://HOST:PORT.',
    );
  const bucket = url.href.replace(/\/+$/, '') + (endpoint && `/${name}`);
  return { bucket, prefix: prefix && `${prefix}/` };
}

/** Their values are in no message. */
async function credentialsOf(path: string) {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const lines = path === '' ? [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY] : await linesOf(path);
  const [accessKeyId = '', secretAccessKey = ''] = lines;
  if (!/^[!-~]+ [!-~]+$/.test(`${accessKeyId} ${secretAccessKey}`)) {
    const into =
      path === '' ? 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY' : `the first two lines of ${path}`;
    throw failed(`no credentials for the copy. Put the access key and the secret into ${into}.`);
  }
  const session = path === '' && AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {};
  return { accessKeyId, secretAccessKey, ...session };
}

async function linesOf(path: string): Promise<string[]> {
  try {
    if (((await stat(path)).mode & 0o007) === 0)
      return (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
  } catch (error) {
    throw failed(`cannot read the credentials of the copy: ${reasonOf(error)}`, { cause: error });
  }
  throw failed(`others can read ${path}. Run: chmod o= ${path}`);
}

const CHECK_SERVICE = "See the S3 service's own log";
const CHECK_REGION = 'Check the region and the endpoint';
const CHECK = new Map([
  [301, CHECK_REGION],
  [307, CHECK_REGION],
  [400, CHECK_REGION],
  [403, "Check the credentials, what they permit in the bucket, and this machine's clock"],
  [404, 'Check the bucket and the endpoint'],
  [409, 'Other requests for this object are under way'],
  [501, 'It cannot create an object only if there is none: use a release that knows If-None-Match'],
]);

const notDone = (to: string, { status, code }: Answer): Unreachable =>
  new Unreachable(`${to} answered ${status}${code && ` (${code})`}. ${CHECK.get(status) ?? CHECK_SERVICE}.`);

function requireDone(to: string, answer: Answer): Answer {
  if (answer.status >= 300) throw notDone(to, answer);
  return answer;
}

/** What TLS says of a certificate that nobody trusted has signed. */
const UNTRUSTED = /^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)/;

function notAnswered(to: string, error: unknown): Unreachable {
  // fetch() hides what happened, and of several addresses each its own.
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const first = cause instanceof AggregateError ? cause.errors[0] : cause;
  const check = UNTRUSTED.test(errorCode(first))
    ? 'If a private authority signed its certificate, name the file of its own in NODE_EXTRA_CA_CERTS'
    : 'Check that the S3 service runs, and the network';
  return new Unreachable(`cannot reach ${to}: ${reasonOf(first)}. ${check}.`, { cause: error });
}
