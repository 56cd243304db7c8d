/** What the app asks of the appliance: reads, actions, and the one stream of events that says when to read again. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

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
export async function ask<Answer>(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(path, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
  }).catch((error: unknown) => {
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

/** Calls back for each event: what changed, or `session` when the session has ended. */
export function useEvents(listener: (topic: string) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const own = (topic: string) => latest.current(topic);
    listeners.add(own);
    return () => listeners.delete(own);
  }, []);
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
    let wasBroken = false;
    const close = () => {
      clearTimeout(timer);
      source?.close();
      wasBroken = true;
    };
    const open = () => {
      source = new EventSource(path);
      source.onopen = () => {
        setConnected(true);
        if (wasBroken) emit('all');
        wasBroken = false;
      };
      source.onerror = () => {
        // The browser tries again by itself after a break, but not after an answer such as 401 or 503.
        close();
        setConnected(false);
        // Perhaps because the session has ended.
        emit('session');
        timer = setTimeout(open, RECONNECT_MS);
      };
      for (const topic of topics) source.addEventListener(topic, () => emit(topic));
    };
    const follow = () => {
      if (document.hidden) close();
      else open();
    };
    document.addEventListener('visibilitychange', follow);
    if (!document.hidden) open();
    return () => {
      document.removeEventListener('visibilitychange', follow);
      close();
    };
  }, []);
  return connected;
}

export interface Reading<Answer> {
  /** Of the last answer; kept while it is read again. */
  readonly data: Answer | undefined;
  readonly failure: Failure | undefined;
  readonly isReading: boolean;
  readAgain(): void;
}

/**
 * Reads a path now and whenever one of the topics changed; null reads nothing.
 * Bursts of events make one reading at a time, so the appliance is asked no faster than it answers.
 */
export function useReading<Answer>(path: string | null, topics: readonly string[] = []): Reading<Answer> {
  const [state, setState] = useState<{ path: string | null; data?: Answer; failure?: Failure }>({ path });
  const [isReading, setIsReading] = useState(path !== null);
  const running = useRef<AbortController | null>(null);
  const isStale = useRef(false);
  const read = useCallback(async () => {
    if (path === null) return;
    if (running.current !== null) {
      isStale.current = true;
      return;
    }
    const own = new AbortController();
    running.current = own;
    setIsReading(true);
    try {
      const data = await ask<Answer>(path, { signal: own.signal });
      setState({ path, data });
    } catch (error) {
      if (own.signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      setState((before) => ({ ...(before.path === path && before), path, failure: error }));
    } finally {
      if (running.current === own) {
        running.current = null;
        setIsReading(false);
        if (isStale.current) {
          isStale.current = false;
          void read();
        }
      }
    }
  }, [path]);
  useEffect(() => {
    void read();
    return () => {
      running.current?.abort();
      running.current = null;
      isStale.current = false;
    };
  }, [read]);
  useEvents((topic) => {
    if (topic === 'all' || topics.includes(topic)) void read();
  });
  const isOwn = state.path === path;
  return {
    data: isOwn ? state.data : undefined,
    failure: isOwn ? state.failure : undefined,
    isReading,
    readAgain: read,
  };
}

const ticking = new Set<() => void>();
setInterval(() => {
  for (const tick of ticking) tick();
}, 1000);

/** The appliance's clock, which ticks: whoever shows an age is drawn again, all of them at once. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const tick = () => setNow(serverNow());
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
  return now;
}
