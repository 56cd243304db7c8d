/**
 * A client of the Detection Reporting API: one request at a time, with retries. Every answer is
 * checked against its schema, so nothing else is ever stored.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { CONTENT_TYPES, perExport } from '../../detection/content-type.ts';
import { failed, reasonOf, unlessError } from '../../refused.ts';
import { DAY_MS, SECOND_MS } from '../../time.ts';

export const TextOrNull = Type.Union([Type.String(), Type.Null()]);
export const ContentType = Type.Union(CONTENT_TYPES.map((name) => Type.Literal(name)));

/** Keeps members that are not named here. */
export const Detection = Type.Object({ id: Type.String(), version: Type.Integer({ minimum: 1 }) });
export type Detection = Static<typeof Detection> & { readonly [member: string]: unknown };

const Rows = { data: Type.Array(Detection), has_more: Type.Boolean() };
export const ChangesPage = Type.Object({ ...Rows, next_cursor: Type.String() });
export const PeriodPage = Type.Object({ ...Rows, next_cursor: TextOrNull, as_of: TextOrNull });
type Page = typeof ChangesPage | typeof PeriodPage;
const Types = Type.Array(Type.String());
const Starts = Type.Record(Type.String(), TextOrNull);
const Subscription = Type.Object({ id: Type.Integer(), content_types: Types, data_starts: Starts });
export const Me = Type.Object({ subscriptions: Type.Array(Subscription) });

/** The members of GET /v1/health that say why it is degraded. */
export const Health = Type.Object({
  alerts: Type.Object({ open: Type.Integer(), page_worthy: Type.Integer() }),
  exports: Type.Object(perExport(() => Type.Object({ newest_done: TextOrNull }))),
});
export type Health = Static<typeof Health>;

/** The largest page that the service allows. */
export const LIMIT = 1000;

/** Undefined and null parameters are left out. */
type Query = Readonly<Record<string, string | number | null | undefined>>;

interface ApiOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly key: string;
  readonly onWait: (reason: string, waitMs: number) => void;
  readonly signal: AbortSignal;
}

const FIRST_WAIT_MS = SECOND_MS;
const WAIT_MS_MAX = 5 * 60 * SECOND_MS;
/** The longest wait even if Retry-After is longer: a timer cannot wait more than 24 days. */
const PAUSE_MS_MAX = DAY_MS;
const TIMEOUT_MS = 60 * SECOND_MS;
const RETRIED = new Set([429, 500, 502, 503, 504]);

export type Api = ReturnType<typeof createApi>;

export function createApi(options: ApiOptions) {
  /**
   * @param waitSeconds how long the service may wait for a change before it answers with an empty page (RFC 7240)
   * @throws Refused `failed` for an answer that must not be retried
   */
  async function get<Body extends TSchema>(path: string, schema: Body, query: Query = {}, waitSeconds = 0) {
    const url = new URL(`${options.baseUrl}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined && value !== null) url.searchParams.set(name, `${value}`);
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
      const answer = await attempt(url, options, waitSeconds);
      if (answer.again === undefined) {
        const body: unknown = answer.body;
        if (Value.Check(schema, body)) return { ...answer, body };
        throw failed(`${path} did not answer as a Detection Reporting API. Check --base-url.`);
      }
      // A service may say so of every answer: only the first request is repeated at once.
      const isAtOnce = (answer.afterMs ?? 0) < SECOND_MS && waitMs > FIRST_WAIT_MS;
      const pauseMs = Math.min(isAtOnce ? waitMs : (answer.afterMs ?? waitMs), PAUSE_MS_MAX);
      options.onWait(answer.again, pauseMs);
      await sleep(pauseMs, undefined, { signal: options.signal });
    }
  }

  /** Reads the pages of a change stream or a period until `has_more` is false; parameters as {@link get}. */
  async function* pages<Form extends Page>(path: string, schema: Form, query: Query, waitSeconds = 0) {
    for (let next = query; ; ) {
      const reply = await get(path, schema, next, waitSeconds);
      yield reply;
      if (!reply.body.has_more) return;
      next = { ...query, since: null, cursor: reply.body.next_cursor };
    }
  }
  return { get, pages };
}

/**
 * @returns a good answer, or the reason to ask again. `dateMs`: the server's clock when it answered, epoch milliseconds, since
 *   the client's own clock may be wrong; `hasWaited`: whether the service waited for a change
 */
async function attempt(url: URL, { key, signal }: ApiOptions, waitSeconds: number) {
  const prefer = waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {};
  const timeout = AbortSignal.timeout(TIMEOUT_MS + waitSeconds * SECOND_MS);
  const headers = { authorization: `Bearer ${key}`, accept: 'application/json', ...prefer };
  const request = { headers, redirect: 'manual', signal: AbortSignal.any([signal, timeout]) } as const;
  const received = await fetch(url, request)
    .then(async (response) => ({ response, body: parseJson(await response.text()) }))
    .catch((error: unknown) => {
      signal.throwIfAborted();
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      return reasonOf(cause instanceof AggregateError ? cause.errors[0] : cause);
    });
  // What the fetch standard calls the ports that no client may use.
  if (received === 'bad port')
    throw failed(
      `${url.origin} has a port that is reserved for another protocol. Let the service listen on another.`,
    );
  if (typeof received === 'string') return { again: `${url.origin} cannot be reached (${received})` };
  const { response, body } = received;
  const { status, statusText } = response;
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  if (status === 200) {
    if (body === undefined || Number.isNaN(dateMs))
      return { again: `${url.origin} did not answer with JSON` };
    return { body, dateMs, hasWaited: response.headers.has('preference-applied') };
  }
  const location = response.headers.get('location');
  // Not followed: the key is for the service that was named.
  if (status >= 300 && status < 400 && location !== null) {
    const to = URL.parse(location, url.href)?.href ?? location;
    const next = 'If that is the service, name its address with --base-url.';
    throw failed(`${url.origin}${url.pathname} redirects to ${to}. ${next}`);
  }
  const detail = Value.Check(Type.Object({ detail: Type.String() }), body) ? body.detail : statusText;
  const reason = `${url.pathname} answered with status ${status}: ${detail}`;
  if (!RETRIED.has(status)) throw failed(reason);
  return { again: reason, afterMs: retryAfterMs(response.headers.get('retry-after'), dateMs) };
}

/** Reads seconds, or a date by the server's clock (RFC 9110, section 10.2.3). */
function retryAfterMs(value: string | null, dateMs: number): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND_MS;
  const untilMs = Date.parse(value);
  return Number.isNaN(untilMs) || Number.isNaN(dateMs) ? null : Math.max(0, untilMs - dateMs);
}

/** @returns null for text that is not JSON of this form */
export function parseAs<Form extends TSchema>(form: Form, text: string): Static<Form> | null {
  const value = parseJson(text);
  return Value.Check(form, value) ? value : null;
}

/** @returns undefined for text that is not JSON */
export const parseJson = (text: string): unknown =>
  unlessError<unknown, undefined>(undefined, () => JSON.parse(text));
