/** Requests to the appliance: reads, actions, and what has changed, so that views are read again. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Changes } from '../admin/console/api.ts';

/** A request that failed; `status` 0: no answer. */
export class Failure extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

export const SESSION = '/console/session';
const NO_ANSWER = 'Wirewatch does not answer. Check that it runs and can be reached from here.';

/** How far the appliance's clock is ahead of the browser's, milliseconds. */
let aheadMs = 0;

/** The appliance's clock, epoch milliseconds: ages are calculated with it, whatever the browser's clock shows. */
export const serverNow = () => Date.now() + aheadMs;

/** The place of the session's secret. All tabs of an origin share it; a server at another port cannot read it. */
const SECRET = 'wirewatch-session';

/** @param secret empty: there is none any more */
export const keepSecret = (secret: string) => localStorage.setItem(SECRET, secret);

/** @throws Failure for a refusal, and without an answer */
async function ask<Answer>(path: string, init: RequestInit): Promise<Answer> {
  const headers = { ...init.headers, authorization: `Bearer ${localStorage.getItem(SECRET) ?? ''}` };
  const response = await fetch(path, { ...init, headers }).catch((error: unknown) => {
    if (init.signal?.aborted === true) throw error;
    throw new Failure(0, NO_ANSWER);
  });
  const date = Date.parse(response.headers.get('date') ?? '');
  if (Math.abs(date - serverNow()) > 2000) aheadMs = date - Date.now();
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  // A read of the session itself handles its 401.
  if (response.status === 401 && path !== SESSION) emit('session');
  throw new Failure(response.status, answer.detail ?? answer.title ?? `The answer was ${response.status}.`);
}

/** Why something was refused; any other error is thrown. */
export function refusalOf(error: unknown): string {
  if (error instanceof Failure) return error.message;
  throw error;
}

/** Carries out an action. @param isAsync whether only its beginning is waited for @throws Failure */
export function send<Answer>(path: string, body: unknown, isAsync = false): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(isAsync && { prefer: 'respond-async' }) };
  return ask(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** An event is named after what changed; `session`: it may have ended; `tick`: every second. */
const events = new EventTarget();

const emit = (topic: string) => events.dispatchEvent(new Event(topic));

/** What is read now and at each event. */
export function useAtEvent<Value>(target: EventTarget, name: string, readValue: () => Value): Value {
  const [value, setValue] = useState(readValue);
  useEffect(() => {
    const onEvent = () => setValue(readValue());
    target.addEventListener(name, onEvent);
    return () => target.removeEventListener(name, onEvent);
  }, []);
  return value;
}

/** The appliance's clock; every second, all ages are drawn again at once. */
export const useNow = () => useAtEvent(events, 'tick', serverNow);

const TOPICS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'role'] as const;
const ASK_EVERY_MS = 1000;
const ANSWER_MS = 10_000;

/**
 * Asks every second what has changed, while the page is visible. After a break, everything is read again.
 * @returns whether the appliance answers; null before the first answer
 */
export function useChanges(): boolean | null {
  const [connected, setConnected] = useState<boolean | null>(null);
  useEffect(() => {
    let isAsking = false;
    /** Undefined before the first answer, null after a break. */
    let known: Changes | null | undefined;
    const poll = async () => {
      if ((document.hidden && known !== undefined) || isAsking) return;
      isAsking = true;
      const signal = AbortSignal.timeout(ANSWER_MS);
      const changes = await ask<Changes>('/console/changes', { signal }).catch(() => null);
      isAsking = false;
      setConnected(changes !== null);
      const before = known;
      known = changes;
      if (changes === null || before === undefined) return;
      for (const topic of TOPICS) if (before?.[topic] !== changes[topic]) emit(topic);
    };
    const timer = setInterval(() => {
      emit('tick');
      void poll();
    }, ASK_EVERY_MS);
    document.addEventListener('visibilitychange', poll);
    void poll();
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', poll);
    };
  }, []);
  return connected;
}

/** The content of a path; of a list, page by page. There is one request at a time: events must not overload the appliance. */
export class Reading<Answer extends object> {
  /** The pages read so far; kept while they are read again. */
  pages: readonly Answer[] = [];
  failure: Failure | undefined;
  isReading = false;
  retry = () => {};
  readonly #path: string;
  readonly #draw: () => void;
  readonly #stopped = new AbortController();
  #isStale = false;

  constructor(path: string, draw: () => void) {
    this.#path = path;
    this.#draw = draw;
  }

  /** Reads now and at each event. @returns ends it */
  start(topics: readonly string[]): () => void {
    const { signal } = this.#stopped;
    for (const topic of topics)
      events.addEventListener(topic, () => this.pages.length <= 1 && this.#read(), { signal });
    void this.#read();
    return () => this.#stopped.abort();
  }

  get older(): (() => void) | null {
    return nextOf(this.pages.at(-1)) === null ? null : () => void this.#read(true);
  }

  async #read(isOlder = false): Promise<void> {
    this.#isStale = this.isReading && (this.#isStale || !isOlder);
    if (this.isReading) return;
    this.isReading = true;
    this.#draw();
    const { signal } = this.#stopped;
    const after = isOlder ? nextOf(this.pages.at(-1)) : null;
    const query = after ? `${this.#path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}` : '';
    try {
      const page = await ask<Answer>(this.#path + query, { signal });
      signal.throwIfAborted();
      this.pages = isOlder ? [...this.pages, page] : [page];
      this.failure = undefined;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      this.failure = error;
      this.retry = () => void this.#read(isOlder);
    } finally {
      this.isReading = false;
      if (!signal.aborted) this.#draw();
    }
    if (this.#isStale && this.pages.length <= 1) void this.#read();
  }
}

/** Reads a path now and at each event with one of the topics. A list is read again while it has one page. */
export function useReading<Answer extends object>(path: string, topics: readonly string[] = []) {
  const [, setDrawn] = useState({});
  const reading = useMemo(() => new Reading<Answer>(path, () => setDrawn({})), [path]);
  useEffect(() => reading.start(topics), [reading]);
  return reading;
}

const nextOf = (page: object | undefined): string | null =>
  page !== undefined && 'next' in page && typeof page.next === 'string' ? page.next : null;
