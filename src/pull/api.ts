/**
 * The Detection Reporting API from a client's side: one request at a time, with retries.
 *
 * Contract, "Retry": on 429, 500 and 503 wait and try again, the wait doubling each time; `Retry-After` where it is
 * given; 400, 401, 403 and 404 are never sent again unchanged.
 */
import { Refused } from '../refused.ts';
import { DAY_MS, SECOND_MS } from '../time.ts';

export interface Reply {
  readonly body: unknown;
  /** The server's clock when it answered, epoch milliseconds; the client's own is never relied on. */
  readonly dateMs: number;
  /** Whether it waited for a change, as it was asked to. */
  readonly hasWaited: boolean;
}

export interface ApiOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly key: string;
  /** Waits; rejects when the work is to end. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Called for every wait, with its reason in words. */
  readonly onWait: (reason: string, waitMs: number) => void;
  readonly signal: AbortSignal;
}

export interface Api {
  /**
   * @param query parameters; undefined ones are left out
   * @param waitSeconds how long the service may wait for a change before it answers with an empty page (RFC 7240)
   */
  get(
    path: string,
    query?: Readonly<Record<string, string | number | undefined>>,
    waitSeconds?: number,
  ): Promise<Reply>;
}

const FIRST_WAIT_MS = SECOND_MS;
const WAIT_MS_MAX = 5 * 60 * SECOND_MS;
/** If a server asks for more, it is asked again after this time. A timer cannot wait more than 24 days. */
const PAUSE_MS_MAX = DAY_MS;
const TIMEOUT_MS = 60 * SECOND_MS;
const RETRIED = new Set([429, 500, 502, 503, 504]);

type Outcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'again'; readonly reason: string; readonly afterMs: number | null }
  | { readonly kind: 'refused'; readonly detail: string };

/** @throws from `get`: Refused `failed` for an answer that must not be retried */
export function createApi(options: ApiOptions): Api {
  return {
    async get(path, query = {}, waitSeconds = 0) {
      const url = new URL(`${options.baseUrl}${path}`);
      for (const [name, value] of Object.entries(query)) {
        if (value !== undefined) url.searchParams.set(name, `${value}`);
      }
      for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
        const outcome = await attempt(url, options, waitSeconds);
        if (outcome.kind === 'reply') return outcome.reply;
        if (outcome.kind === 'refused') throw new Refused('failed', outcome.detail);
        const pauseMs = Math.min(outcome.afterMs ?? waitMs, PAUSE_MS_MAX);
        options.onWait(outcome.reason, pauseMs);
        await options.sleep(pauseMs);
      }
    },
  };
}

async function attempt(url: URL, { key, signal }: ApiOptions, waitSeconds: number): Promise<Outcome> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      headers: {
        authorization: `Bearer ${key}`,
        accept: 'application/json',
        ...(waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {}),
      },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS + waitSeconds * SECOND_MS)]),
    });
    text = await response.text();
  } catch (error) {
    signal.throwIfAborted();
    return { kind: 'again', reason: `${url.origin} cannot be reached (${reasonOf(error)})`, afterMs: null };
  }
  const dateMs = Date.parse(response.headers.get('date') ?? '');
  if (response.status === 200) {
    const body = parseJson(text);
    const hasWaited = response.headers.has('preference-applied');
    if (body !== undefined && !Number.isNaN(dateMs))
      return { kind: 'reply', reply: { body, dateMs, hasWaited } };
    return { kind: 'again', reason: `${url.origin} did not answer with JSON`, afterMs: null };
  }
  const detail = detailOf(parseJson(text)) ?? response.statusText;
  if (!RETRIED.has(response.status)) {
    return { kind: 'refused', detail: `${url.pathname} answered with status ${response.status}: ${detail}` };
  }
  return {
    kind: 'again',
    reason: `${url.pathname} answered with status ${response.status}: ${detail}`,
    afterMs: retryAfterMs(response.headers.get('retry-after'), dateMs),
  };
}

/** Seconds, or a date (RFC 9110, 10.2.3) by the server's clock. */
function retryAfterMs(value: string | null, dateMs: number): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND_MS;
  const untilMs = Date.parse(value);
  return Number.isNaN(untilMs) || Number.isNaN(dateMs) ? null : Math.max(0, untilMs - dateMs);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function detailOf(problem: unknown): string | null {
  if (typeof problem !== 'object' || problem === null) return null;
  const detail: unknown = Reflect.get(problem, 'detail');
  return typeof detail === 'string' ? detail : null;
}

/** In words, what keeps a client from a service most often. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing is listening there',
  ECONNRESET: 'connection reset',
  ENOTFOUND: 'unknown host name',
  ETIMEDOUT: 'connection timed out',
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code !== '') return REASONS[code] ?? code;
  return cause instanceof Error ? cause.message : error.message;
}
