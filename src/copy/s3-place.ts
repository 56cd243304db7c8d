/**
 * A place that is a bucket of an S3 service, or what begins with a prefix in it.
 *
 * An object is created with `If-None-Match: *`, which the service decides. Where its answer is lost, the object is read
 * back: what is there tells who created it.
 */
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { paced } from '../pace.ts';
import { errorCode, failed, Refused, reasonOf } from '../refused.ts';
import { isName, type Place, type PlaceSettings, requireName, Unreachable } from './place.ts';

/** Until the answer begins, and again until it is complete; besides a second for each MiB that is sent or received. */
const LIMIT_MS = 30_000;
const RETRIES = 2;
const PAUSE_MS = 500;

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  /** What S3 calls the error; empty if there is none. */
  readonly code: string;
}

interface Question {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
}

/**
 * @param to `s3://bucket/prefix`, or without a prefix
 * @param limitMs tests change it
 * @throws Refused `failed` if the address, the settings or the credentials cannot be used
 */
export async function openS3Place(to: string, settings: PlaceSettings, limitMs = LIMIT_MS): Promise<Place> {
  const { bucket, prefix } = addressOf(to, settings);
  const credentials = await credentialsOf(settings.credentials);
  const cache = new Map<string, ArrayBuffer>();
  const objectUrl = (name: string) => `${bucket}/${`${prefix}${name}`.split('/').map(encoded).join('/')}`;

  /** @returns Unreachable if it is not known what the service did */
  async function ask(method: string, url: string, question: Question = {}): Promise<Answer | Unreachable> {
    const { body = new Uint8Array(), headers } = question;
    const sum = Buffer.from(await crypto.subtle.digest('SHA-256', body)).toString('hex');
    const signed = await new AwsV4Signer({
      ...credentials,
      ...{ method, url, cache, service: 's3', region: settings.region },
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
      const code = status < 300 ? '' : (/<Code>(\w+)<\/Code>/.exec(received.toString('latin1'))?.[1] ?? '');
      const answer = { status, body: received, code };
      return status >= 500 || status === 429 ? notDone(to, answer) : answer;
    } catch (error) {
      return controller.signal.aborted
        ? new Unreachable(`${to} does not answer. Check that the S3 service runs, and the network.`)
        : notConnected(to, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** For questions that may be asked twice. */
  async function askAgain(method: string, url: string): Promise<Answer> {
    for (let retries = 0; ; retries++) {
      const answer = await ask(method, url);
      if (!(answer instanceof Unreachable)) return answer;
      if (retries === RETRIES) throw answer;
      await sleep(paced(PAUSE_MS * 2 ** retries));
    }
  }

  async function read(name: string): Promise<Buffer | null> {
    requireName(name);
    const answer = await askAgain('GET', objectUrl(name));
    if (answer.status === 404 && answer.code === 'NoSuchKey') return null;
    return requireDone(to, answer).body;
  }

  return {
    text: to,
    async create(name, content) {
      requireName(name);
      const question = { headers: { 'if-none-match': '*' }, body: new Uint8Array(content) };
      let unknown: Unreachable | undefined;
      for (let retries = 0; retries <= RETRIES; retries++) {
        if (retries > 0) await sleep(paced(PAUSE_MS * 2 ** retries));
        const answer = await ask('PUT', objectUrl(name), question);
        // 409: another request for this object was under way, and this one did nothing.
        if (!(answer instanceof Unreachable) && answer.status === 409) continue;
        if (answer instanceof Unreachable) unknown = answer;
        else if (answer.status !== 412) return requireDone(to, answer) === answer;
        else if (unknown === undefined) return false;
        const found = await read(name);
        if (found !== null) return found.equals(content);
      }
      throw unknown ?? new Unreachable(`${to}: other requests for ${name} are under way.`);
    },
    async list(start, after) {
      requireName(start, 'prefix');
      const found: string[] = [];
      const common = { 'list-type': '2', prefix: `${prefix}${start}` };
      let more: Record<string, string> = after === '' ? {} : { 'start-after': `${prefix}${after}` };
      for (;;) {
        // In the order of their names, and encoded as the signature has them.
        const query = Object.entries({ ...more, ...common }).map(
          ([name, value]) => `${name}=${encoded(value)}`,
        );
        const answer = requireDone(to, await askAgain('GET', `${bucket}?${query.sort().join('&')}`));
        const page = answer.body.toString();
        for (const [, key = ''] of page.matchAll(/<Key>([^<]*)<\/Key>/g))
          found.push(decoded(key).slice(prefix.length));
        const [, token] = /<NextContinuationToken>([^<]*)</.exec(page) ?? [];
        if (token === undefined || !/<IsTruncated>true</.test(page)) break;
        more = { 'continuation-token': decoded(token) };
      }
      // A service may have other objects there, and some list in another order.
      return found.filter((name) => isName(name) && name > after).sort();
    },
    read,
    async delete(name) {
      requireName(name);
      const answer = await askAgain('DELETE', objectUrl(name));
      if (answer.code !== 'NoSuchKey') requireDone(to, answer);
    },
  };
}

/** Amazon wants the bucket in the host name, where a name with dots has no certificate; others know it in the path. */
function addressOf(to: string, { endpoint, region }: PlaceSettings): { bucket: string; prefix: string } {
  const [, name = '', path = ''] = /^s3:\/\/([A-Za-z0-9][\w.-]+)(?:\/(.*))?$/.exec(to) ?? [];
  const prefix = path.replace(/\/+$/, '');
  if (name === '' || /[\0-\x1f\x7f]|(^|\/)(\.{0,2})(\/|$)/.test(prefix || '-'))
    throw failed(`${JSON.stringify(to)} is not the address of a bucket. Write s3://bucket/prefix.`);
  const amazon = `s3.${region}.amazonaws.com`;
  let bucket = name.includes('.') ? `https://${amazon}/${name}` : `https://${name}.${amazon}`;
  if (endpoint !== null) {
    const url = URL.parse(endpoint);
    if (
      !url ||
      !/^https?:$/.test(url.protocol) ||
      `${url.username}${url.password}${url.search}${url.hash}` !== ''
    )
      throw failed(
        'The endpoint of the S3 service is not an address. Write https://HOST or https://HOST:PORT.',
      );
    bucket = `${url.href.replace(/\/+$/, '')}/${name}`;
  }
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` };
}

/** Their values are in no message. */
async function credentialsOf(path: string | null) {
  const env = process.env;
  let [accessKeyId, secretAccessKey] = [env.AWS_ACCESS_KEY_ID, env.AWS_SECRET_ACCESS_KEY];
  let from = 'the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  if (path !== null) {
    from = `the first two lines of ${path}`;
    try {
      const mode = (await stat(path)).mode;
      if (mode & 0o007) throw failed(`others can read ${path}. Run: chmod o= ${path}`);
      [accessKeyId, secretAccessKey] = (await readFile(path, 'utf8')).split('\n').map((line) => line.trim());
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw failed(`cannot read the credentials of the copy: ${reasonOf(error)}`, { cause: error });
    }
  }
  if (!/^[!-~]+$/.test(accessKeyId ?? '') || !/^[!-~]+$/.test(secretAccessKey ?? ''))
    throw failed(`no credentials for the copy. Put the access key and the secret into ${from}.`);
  const session = path === null ? env.AWS_SESSION_TOKEN : undefined;
  return {
    accessKeyId: accessKeyId ?? '',
    secretAccessKey: secretAccessKey ?? '',
    ...(session ? { sessionToken: session } : {}),
  };
}

const CHECK = new Map([
  [301, 'Check the region and the endpoint'],
  [307, 'Check the region and the endpoint'],
  [400, 'Check the region and the endpoint'],
  [403, "Check the credentials, what they permit in the bucket, and this machine's clock"],
  [404, 'Check the bucket and the endpoint'],
  [501, 'It cannot create an object only if there is none: use a release that knows If-None-Match'],
]);

function notDone(to: string, { status, code }: Answer): Unreachable {
  const check = CHECK.get(status) ?? "See the S3 service's own log";
  return new Unreachable(`${to} answered ${status}${code && ` (${code})`}. ${check}.`);
}

function requireDone(to: string, answer: Answer): Answer {
  if (answer.status >= 300) throw notDone(to, answer);
  return answer;
}

const TRUST = /CERT|ISSUER|SIGNATURE/;

function notConnected(to: string, error: unknown): Unreachable {
  // fetch() hides what happened, and of several addresses each its own.
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const first = cause instanceof AggregateError ? cause.errors[0] : cause;
  const isTrust = TRUST.test(errorCode(first));
  const check = isTrust
    ? 'If a private authority signed its certificate, name a file with the certificate of the authority in the environment variable NODE_EXTRA_CA_CERTS'
    : 'Check that the S3 service runs, and the network';
  return new Unreachable(`cannot reach ${to}: ${reasonOf(first)}. ${check}.`, { cause: error });
}

/** As the signature wants it (RFC 3986). */
function encoded(text: string): string {
  const byte = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replace(/[!'()*]/g, byte);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** The text of an XML element. */
function decoded(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (all, hex, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? all;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}
