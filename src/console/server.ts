/** Requests to the appliance: reads, actions, and the stream of events that says when to read again. */
import { useEffect, useRef, useState } from 'preact/hooks';

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
export function serverNow(): number {
  return Date.now() + aheadMs;
}

/** @throws Failure */
async function ask<Answer>(path: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(path, init).catch((error: unknown) => {
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

/** Carries out an action. @throws Failure */
export function send<Answer>(path: string, body: unknown): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  return ask(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

const listeners = new Set<(topic: string) => void>();

function emit(topic: string): void {
  for (const listener of listeners) listener(topic);
}

/** Calls back for each event: what changed; `session` when it may have ended; `tick` every second. */
function useEvents(listener: (topic: string) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const own = (topic: string) => latest.current(topic);
    listeners.add(own);
    return () => listeners.delete(own);
  }, []);
}

setInterval(() => emit('tick'), 1000);

/** The appliance's clock; every second, all ages are drawn again at once. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow);
  useEvents((topic) => {
    if (topic === 'tick') setNow(serverNow());
  });
  return now;
}

const RECONNECT_MS = 3000;

/**
 * Keeps the event stream open while the page is visible: a browser has six connections per server, and hidden pages would
 * use them all. After a break, everything is read again.
 *
 * @returns whether it is connected; null before the first answer
 */
export function useStream(path: string, topics: readonly string[]): boolean | null {
  const [connected, setConnected] = useState<boolean | null>(null);
  useEffect(() => {
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    const close = () => {
      clearTimeout(timer);
      source?.close();
    };
    const follow = () => {
      close();
      if (document.hidden) return;
      source = new EventSource(path);
      source.onopen = () => {
        setConnected(true);
        if (!isFirst) emit('all');
        isFirst = false;
      };
      source.onerror = () => {
        // The browser reconnects after a break, but not after an answer such as 401 or 503.
        close();
        setConnected(false);
        // The session may have ended.
        emit('session');
        timer = setTimeout(follow, RECONNECT_MS);
      };
      for (const topic of topics) source.addEventListener(topic, () => emit(topic));
    };
    document.addEventListener('visibilitychange', follow);
    follow();
    return () => {
      document.removeEventListener('visibilitychange', follow);
      close();
    };
  }, []);
  return connected;
}

/** The content of a path; of a list, page by page. */
export interface Reading<Answer> {
  /** The pages read so far; kept while they are read again. */
  readonly pages: readonly Answer[];
  readonly failure?: Failure | undefined;
  readonly isReading?: boolean;
  /** Repeats the failed request. */
  readonly retry: () => void;
  /** Reads the next page; null without one. */
  readonly older: (() => void) | null;
}

interface State<Answer> extends Omit<Reading<Answer>, 'older'> {
  readonly path: string;
}

/**
 * Reads a path now and at each event with one of the topics. A list is read again while it has one page; with `onTop`,
 * only newer rows are read, which `onTop` adds to the first page. There is one request at a time, so bursts of events do
 * not overload the appliance.
 */
export function useReading<Answer extends object>(
  path: string,
  topics: readonly string[] = [],
  onTop?: (newer: Answer, before: Answer) => Answer,
): Reading<Answer> {
  const [, redraw] = useState({});
  const state = useRef<State<Answer>>({ path, pages: [], retry: () => {} });
  const running = useRef<AbortController | null>(null);
  const isStale = useRef(false);
  if (state.current.path !== path) state.current = { path, pages: [], retry: () => {} };
  const put = (change: Partial<State<Answer>>) => {
    state.current = { ...state.current, ...change };
    redraw({});
  };
  const read = async (isOlder = false): Promise<void> => {
    if (running.current !== null) {
      isStale.current ||= !isOlder;
      return;
    }
    const own = new AbortController();
    running.current = own;
    put({ isReading: true });
    const { pages } = state.current;
    const [first] = pages;
    const after = isOlder ? nextOf(pages.at(-1)) : onTop && nextOf(first);
    const query = after ? `${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}` : '';
    try {
      const page = await ask<Answer>(path + query, { signal: own.signal });
      own.signal.throwIfAborted();
      const top = onTop !== undefined && first !== undefined && after ? onTop(page, first) : page;
      put({ pages: isOlder ? [...pages, page] : [top], failure: undefined });
    } catch (error) {
      if (own.signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      put({ failure: error, retry: () => void read(isOlder) });
    } finally {
      if (running.current === own) {
        running.current = null;
        put({ isReading: false });
        if (isStale.current) changed('all');
      }
    }
  };
  const changed = (topic: string) => {
    if (topic !== 'all' && !topics.includes(topic)) return;
    isStale.current = false;
    if (state.current.pages.length <= 1) void read();
  };
  useEvents(changed);
  useEffect(() => {
    void read();
    return () => {
      running.current?.abort();
      running.current = null;
      isStale.current = false;
    };
  }, [path]);
  const hasOlder = onTop === undefined && nextOf(state.current.pages.at(-1)) !== null;
  return { ...state.current, older: hasOlder ? () => void read(true) : null };
}

/** The `after` of a list's next page. */
function nextOf(page: object | undefined): string | null {
  return page !== undefined && 'next' in page && typeof page.next === 'string' ? page.next : null;
}
