/** What the app asks of the appliance: reads, actions, and the one stream of events that says when to read again. */
import { useEffect, useRef, useState } from 'preact/hooks';

/** A request that was not answered as hoped; `status` 0: no answer at all. */
export class Failure extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

export const SESSION = '/console/session';
const NO_ANSWER = 'Wirewatch does not answer. Check that it runs and can be reached from here.';

/** How far the appliance's clock is ahead of ours, milliseconds. */
let aheadMs = 0;

/** The appliance's clock, epoch milliseconds: ages are told by it, whatever the clock of the browser shows. */
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
  // Who asks for the session itself is told by the answer.
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

/** The appliance's clock, which ticks: whoever shows an age is drawn again, all of them at once. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow);
  useEvents((topic) => {
    if (topic === 'tick') setNow(serverNow());
  });
  return now;
}

const RECONNECT_MS = 3000;

/**
 * Holds the event stream open while the page is seen: a browser has six connections to a server, and pages behind
 * others would keep them all. After a break, everything is read again.
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
        // The browser tries again by itself after a break, but not after an answer such as 401 or 503.
        close();
        setConnected(false);
        // Perhaps because the session has ended.
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

/** A path that is read; a list, page by page. */
export interface Reading<Answer> {
  /** Those read so far; kept while they are read again. */
  readonly pages: readonly Answer[];
  readonly failure?: Failure | undefined;
  readonly isReading?: boolean;
  /** Does again what failed. */
  readonly retry: () => void;
  /** Reads the next page; null: there is none. */
  readonly older: (() => void) | null;
}

interface State<Answer> extends Omit<Reading<Answer>, 'retry' | 'older'> {
  readonly path: string;
  /** Whether that which failed was to read the next page. */
  readonly wasOlder?: boolean;
}

/**
 * Reads a path now and whenever one of the topics changed. A list is read again as long as its first page is the only
 * one; with `onTop`, only what is newer is read, and put on top of the first page by it.
 * Bursts of events make one reading at a time, so the appliance is asked no faster than it answers.
 */
export function useReading<Answer extends object>(
  path: string,
  topics: readonly string[] = [],
  onTop?: (newer: Answer, before: Answer) => Answer,
): Reading<Answer> {
  const [, redraw] = useState({});
  const state = useRef<State<Answer>>({ path, pages: [] });
  const running = useRef<AbortController | null>(null);
  const isStale = useRef(false);
  if (state.current.path !== path) state.current = { path, pages: [] };
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
      put({ failure: error, wasOlder: isOlder });
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
  const retry = () => void read(state.current.wasOlder);
  return { ...state.current, retry, older: hasOlder ? () => void read(true) : null };
}

/** Of a list: what to give as `after` for more of it. */
function nextOf(page: object | undefined): string | null {
  return page !== undefined && 'next' in page && typeof page.next === 'string' ? page.next : null;
}
