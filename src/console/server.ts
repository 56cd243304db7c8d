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

export type Reading<Answer extends object> = ReturnType<typeof createReading<Answer>>;

/** The content of a path; of a list, page by page. There is one request at a time: events must not overload the appliance. */
function createReading<Answer extends object>(path: string, draw: () => void) {
  const stopped = new AbortController();
  const { signal } = stopped;
  let isStale = false;
  const reading = {
    /** The pages read so far; kept while they are read again. */
    pages: [] as readonly Answer[],
    failure: undefined as Failure | undefined,
    isReading: false,
    retry: () => {},
    get older() {
      return nextOf(reading.pages.at(-1)) === null ? null : () => void readPage(true);
    },
    /** Reads now and at each event. @returns ends it */
    start(topics: readonly string[]) {
      for (const topic of topics)
        events.addEventListener(topic, () => reading.pages.length <= 1 && readPage(), { signal });
      void readPage();
      return () => stopped.abort();
    },
  };

  async function readPage(isOlder = false): Promise<void> {
    isStale = reading.isReading && (isStale || !isOlder);
    if (reading.isReading) return;
    reading.isReading = true;
    draw();
    const after = isOlder ? nextOf(reading.pages.at(-1)) : null;
    const query = after ? `${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}` : '';
    try {
      const page = await ask<Answer>(path + query, { signal });
      signal.throwIfAborted();
      reading.pages = isOlder ? [...reading.pages, page] : [page];
      reading.failure = undefined;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      reading.failure = error;
      reading.retry = () => void readPage(isOlder);
    } finally {
      reading.isReading = false;
      if (!signal.aborted) draw();
    }
    if (isStale && reading.pages.length <= 1) void readPage();
  }
  return reading;
}

/** Reads a path now and at each event with one of the topics. A list is read again while it has one page. */
export function useReading<Answer extends object>(path: string, topics: readonly string[] = []) {
  const [, setDrawn] = useState({});
  const reading = useMemo(() => createReading<Answer>(path, () => setDrawn({})), [path]);
  useEffect(() => reading.start(topics), [reading]);
  return reading;
}

const nextOf = (page: object | undefined): string | null =>
  page !== undefined && 'next' in page && typeof page.next === 'string' ? page.next : null;
