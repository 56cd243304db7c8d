/**
 * The Detection Reporting API from a client's side: one request at a time, with retries, and answers that are checked
 * on arrival, so that nothing else is ever stored.
 *
 * Contract, "Retry": on 429, 500 and 503 wait and try again, the wait doubling each time; `Retry-After` where it is
 * given; 400, 401, 403 and 404 are never sent again unchanged.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Refused, reasonOf } from '../refused.ts';
import { DAY_MS, SECOND_MS } from '../time.ts';

export const TextOrNull = Type.Union([Type.String(), Type.Null()]);
export const ContentType = Type.Union([Type.Literal('text'), Type.Literal('image')]);

/** Members that are not named here are kept: clients ignore what is new. */
export const Detection = Type.Object({ id: Type.String(), version: Type.Integer({ minimum: 1 }) });
export type Detection = Static<typeof Detection> & { readonly [member: string]: unknown };

const Rows = { data: Type.Array(Detection), has_more: Type.Boolean() };
export const ChangesPage = Type.Object({ ...Rows, next_cursor: Type.String() });
export const PeriodPage = Type.Object({ ...Rows, next_cursor: TextOrNull, as_of: TextOrNull });
const Last = Type.Object({ id: Type.String(), first_detected_at: Type.String() });
const Digest = Type.Object({ cursor: TextOrNull, last: Last, digest: Type.String() });
export const DigestsPage = Type.Object({ ...Rows, data: Type.Array(Digest), next_cursor: TextOrNull });
const Types = Type.Array(Type.String());
const Starts = Type.Record(Type.String(), TextOrNull);
const Subscription = Type.Object({ id: Type.Integer(), content_types: Types, data_starts: Starts });
export const Me = Type.Object({ subscriptions: Type.Array(Subscription) });
export type Me = Static<typeof Me>;
const Text = Type.String();
const Field = Type.Object({ path: Text, column: Text, type: Text, content_types: Types });
export const Schema = Type.Object({ fields: Type.Array(Field, { minItems: 1 }) });
export type Schema = Static<typeof Schema>;

/** Rows of a page: the most that the service allows. */
export const LIMIT = 1000;

/** Parameters; undefined and null ones are left out. */
type Query = Readonly<Record<string, string | number | null | undefined>>;

interface Reply<Body> {
  readonly body: Body;
  /** The server's clock when it answered, epoch milliseconds; the client's own is never relied on. */
  readonly dateMs: number;
  /** Whether it waited for a change, as it was asked to. */
  readonly hasWaited: boolean;
}

interface ApiOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly key: string;
  /** Called for every wait, with its reason in words. */
  readonly onWait: (reason: string, waitMs: number) => void;
  readonly signal: AbortSignal;
}

const FIRST_WAIT_MS = SECOND_MS;
const WAIT_MS_MAX = 5 * 60 * SECOND_MS;
/** If a server asks for more, it is asked again after this time. A timer cannot wait more than 24 days. */
const PAUSE_MS_MAX = DAY_MS;
const TIMEOUT_MS = 60 * SECOND_MS;
const RETRIED = new Set([429, 500, 502, 503, 504]);

export type Api = ReturnType<typeof createApi>;

export function createApi(options: ApiOptions) {
  /**
   * @param schema what the answer must be
   * @param waitSeconds how long the service may wait for a change before it answers with an empty page (RFC 7240)
   * @throws Refused `failed` for an answer that must not be retried, `not_found` for a 404
   */
  async function get<Body extends TSchema>(
    path: string,
    schema: Body,
    query: Query = {},
    waitSeconds = 0,
  ): Promise<Reply<Static<Body>>> {
    const url = new URL(`${options.baseUrl}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined && value !== null) url.searchParams.set(name, `${value}`);
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
      const answer = await attempt(url, options, waitSeconds);
      if (answer.again === undefined) {
        if (Value.Check(schema, answer.body)) return { ...answer, body: answer.body };
        const told = `the answer of ${path} is not that of a Detection Reporting API. Check --base-url.`;
        throw new Refused('failed', told);
      }
      const pauseMs = Math.min(answer.afterMs ?? waitMs, PAUSE_MS_MAX);
      options.onWait(answer.again, pauseMs);
      await sleep(pauseMs, undefined, { signal: options.signal });
    }
  }

  /** The pages of a change stream, a period or its digests, until `has_more` is false; parameters as of {@link get}. */
  async function* pages<Page extends typeof ChangesPage | typeof PeriodPage | typeof DigestsPage>(
    path: string,
    schema: Page,
    query: Query,
    waitSeconds = 0,
  ): AsyncGenerator<Reply<Static<Page>>, void> {
    for (let next = query; ; ) {
      const reply = await get(path, schema, next, waitSeconds);
      yield reply;
      if (!reply.body.has_more) return;
      next = { ...query, since: null, cursor: reply.body.next_cursor };
    }
  }
  return { get, pages };
}

/** @returns a good answer, or in words why to ask again */
async function attempt(url: URL, { key, signal }: ApiOptions, waitSeconds: number) {
  const prefer = waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {};
  const timeout = AbortSignal.timeout(TIMEOUT_MS + waitSeconds * SECOND_MS);
  const headers = { authorization: `Bearer ${key}`, accept: 'application/json', ...prefer };
  const request = { headers, redirect: 'error', signal: AbortSignal.any([signal, timeout]) } as const;
  const received = await fetch(url, request)
    .then(async (response) => ({ response, body: parseJson(await response.text()) }))
    .catch((error: unknown) => {
      signal.throwIfAborted();
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      return reasonOf(cause instanceof AggregateError ? cause.errors[0] : cause);
    });
  if (typeof received === 'string') return { again: `${url.origin} cannot be reached (${received})` };
  const { response, body } = received;
  const { status, statusText } = response;
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  if (status === 200) {
    if (body === undefined || Number.isNaN(dateMs))
      return { again: `${url.origin} did not answer with JSON` };
    return { body, dateMs, hasWaited: response.headers.has('preference-applied') };
  }
  const detail = Value.Check(Type.Object({ detail: Type.String() }), body) ? body.detail : statusText;
  const told = `${url.pathname} answered with status ${status}: ${detail}`;
  if (!RETRIED.has(status)) throw new Refused(status === 404 ? 'not_found' : 'failed', told);
  return { again: told, afterMs: retryAfterMs(response.headers.get('retry-after'), dateMs) };
}

/** Seconds, or a date (RFC 9110, 10.2.3) by the server's clock. */
function retryAfterMs(value: string | null, dateMs: number): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND_MS;
  const untilMs = Date.parse(value);
  return Number.isNaN(untilMs) || Number.isNaN(dateMs) ? null : Math.max(0, untilMs - dateMs);
}

/** @returns undefined for what is no JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
