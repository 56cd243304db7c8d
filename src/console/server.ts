/** Requests to the appliance: reads, actions, and the stream of events that says when to read again. */
import { useEffect, useMemo, useState } from 'preact/hooks';

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

/** The place of the session's secret. All tabs of an origin share it; a server at another port cannot read it. */
const SECRET = 'wirewatch-session';

/** @param secret null forgets it */
export function keepSecret(secret: string | null): void {
  if (secret === null) localStorage.removeItem(SECRET);
  else localStorage.setItem(SECRET, secret);
}

/** @throws Failure without an answer */
function request(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  const secret = localStorage.getItem(SECRET);
  if (secret !== null) headers.set('authorization', `Bearer ${secret}`);
  return fetch(path, { ...init, headers }).catch((error: unknown) => {
    if (init.signal?.aborted === true) throw error;
    throw new Failure(0, NO_ANSWER);
  });
}

/** @throws Failure */
async function ask<Answer>(path: string, init: RequestInit): Promise<Answer> {
  const response = await request(path, init);
  const date = Date.parse(response.headers.get('date') ?? '');
  if (Math.abs(date - serverNow()) > 2000) aheadMs = date - Date.now();
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  // A read of the session itself handles its 401.
  if (response.status === 401 && path !== SESSION) emit('session');
  throw new Failure(response.status, answer.detail ?? answer.title ?? `The answer was ${response.status}.`);
}

/** Carries out an action. @param isAsync whether only its beginning is waited for @throws Failure */
export function send<Answer>(path: string, body: unknown, isAsync = false): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(isAsync && { prefer: 'respond-async' }) };
  return ask(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** An event is named after what changed; `session`: it may have ended; `all`: after a break; `tick`: every second. */
const events = new EventTarget();

function emit(topic: string): void {
  events.dispatchEvent(new Event(topic));
}

/** The appliance's clock; every second, all ages are drawn again at once. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const tick = () => setNow(serverNow());
    events.addEventListener('tick', tick);
    return () => events.removeEventListener('tick', tick);
  }, []);
  return now;
}

const RECONNECT_MS = 3000;

/** Emits the events of the stream until it ends. It is read by hand, since an EventSource sends no headers. */
async function readEvents(signal: AbortSignal, onOpen: () => void): Promise<void> {
  const { ok, body } = await request('/console/events', { signal });
  if (!ok || body === null) return;
  onOpen();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('event: ')) emit(line.slice('event: '.length));
  }
}

/**
 * Keeps the event stream open while the page is visible: a browser has six connections per server, and hidden pages
 * would use them all. After a break, everything is read again.
 * @returns whether it is connected; null before the first answer
 */
export function useStream(): boolean | null {
  const [connected, setConnected] = useState<boolean | null>(null);
  useEffect(() => {
    let stopped = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    const close = () => {
      clearTimeout(timer);
      stopped.abort();
    };
    const onOpen = () => {
      setConnected(true);
      if (!isFirst) emit('all');
      isFirst = false;
    };
    const follow = async () => {
      close();
      if (document.hidden) return;
      stopped = new AbortController();
      const { signal } = stopped;
      // A break and an answer such as 401 or 503 are treated alike.
      await readEvents(signal, onOpen).catch(() => {});
      if (signal.aborted) return;
      setConnected(false);
      emit('session');
      timer = setTimeout(follow, RECONNECT_MS);
    };
    const ticking = setInterval(() => emit('tick'), 1000);
    document.addEventListener('visibilitychange', follow);
    void follow();
    return () => {
      clearInterval(ticking);
      document.removeEventListener('visibilitychange', follow);
      close();
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
  /** Repeats the failed request. */
  retry = () => {};
  readonly #path: string;
  readonly #draw: () => void;
  readonly #onTop: OnTop<Answer> | undefined;
  readonly #stopped = new AbortController();
  #isStale = false;

  constructor(path: string, draw: () => void, onTop?: OnTop<Answer>) {
    this.#path = path;
    this.#draw = draw;
    this.#onTop = onTop;
  }

  /** Reads now and at each event. @returns ends it */
  start(topics: readonly string[]): () => void {
    const { signal } = this.#stopped;
    for (const topic of ['all', ...topics])
      events.addEventListener(topic, () => this.pages.length <= 1 && this.#read(), { signal });
    void this.#read();
    return () => this.#stopped.abort();
  }

  /** Reads the next page; null without one. */
  get older(): (() => void) | null {
    const hasOlder = this.#onTop === undefined && nextOf(this.pages.at(-1)) !== null;
    return hasOlder ? () => void this.#read(true) : null;
  }

  async #read(isOlder = false): Promise<void> {
    this.#isStale = this.isReading && (this.#isStale || !isOlder);
    if (this.isReading) return;
    this.isReading = true;
    this.#draw();
    const { signal } = this.#stopped;
    const [first] = this.pages;
    const after = isOlder ? nextOf(this.pages.at(-1)) : this.#onTop && nextOf(first);
    const query = after ? `${this.#path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}` : '';
    try {
      const page = await ask<Answer>(this.#path + query, { signal });
      signal.throwIfAborted();
      const top = first !== undefined && after ? this.#onTop?.(page, first) : undefined;
      this.pages = isOlder ? [...this.pages, page] : [top ?? page];
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

type OnTop<Answer> = (newer: Answer, before: Answer) => Answer;

/**
 * Reads a path now and at each event with one of the topics. A list is read again while it has one page; with `onTop`,
 * only newer rows are read, which `onTop` adds to the first page.
 */
export function useReading<Answer extends object>(
  path: string,
  topics: readonly string[] = [],
  onTop?: OnTop<Answer>,
): Reading<Answer> {
  const [, setDrawn] = useState({});
  const reading = useMemo(() => new Reading<Answer>(path, () => setDrawn({}), onTop), [path]);
  useEffect(() => reading.start(topics), [reading]);
  return reading;
}

/** The `after` of a list's next page. */
function nextOf(page: object | undefined): string | null {
  return page !== undefined && 'next' in page && typeof page.next === 'string' ? page.next : null;
}
