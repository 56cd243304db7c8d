/**
 * The exam: an hour of bad days by the lab's clock, played to a client that knows only the address and a key. The
 * lab's report records what the client does; exam-grades.ts grades it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultSpec, LabName } from '../../operations/lab-members.ts';
import { Evidence, filtersOf, isGoodPage, type Moment, type Versions } from './exam-grades.ts';
import type { RequestRecord } from './report.ts';

export interface ClientProcess {
  readonly isRunning: boolean;
  start(): void;
  /** Exit code if it ended by itself since the last call, null for a signal; undefined: it did not end. */
  takeEnd(): number | null | undefined;
  /** Kills it with all its processes; resolves when it is gone. */
  kill(): Promise<void>;
}

export interface ExamOptions {
  /** Has the lab do an operation. @throws Refused by it */
  readonly ask: <Answer>(name: LabName, given: object) => Promise<Answer>;
  /** Reads the API, marked so that the evidence leaves it out. @returns the body of a good answer */
  readonly read: <Answer>(target: string) => Promise<Answer>;
  /** Null: the user runs it. */
  readonly client: ClientProcess | null;
  /** Asks the user to kill the client and start it again; false: there is no terminal. */
  readonly restart: () => Promise<boolean>;
  /** Null: there is no command that prints the copy. */
  readonly copy: (() => Promise<Versions>) | null;
  /** The longest time of one act, in milliseconds of the real clock. */
  readonly patienceMs: number;
  readonly onAct: (name: string) => void;
}

/** User agent of the exam's own requests to the API. */
export const EXAMINER = 'wirewatch-lab-exam';

const POLL_MS = 20;
const START_AGAIN_MS = 500;
const WATCH_401_MS = 5_000;
/** How long after a page was sent the client is killed. */
const KILLS_MS = [0, 3, 10, 30];
/** Delay of an answer that the client must not get before it is killed. */
const HELD = '10m';
const SLOW_BYTES_A_SECOND = 200;
const RETRY_AFTER = 2;
const LOWER_TRIES = 3;
/** Greater than the number of any request: the report then has their count alone. */
const NEWER = Number.MAX_SAFE_INTEGER;
const MONTH_MS = 31 * 24 * 3_600_000;

class Unfinished extends Error {}

interface Reported {
  readonly requests_total: number;
  readonly requests: RequestRecord[];
}

interface Detection {
  readonly id: string;
  readonly version: number;
  readonly content_type: string;
  readonly strength: { readonly score: number };
}

interface Page {
  readonly data: readonly Detection[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** Acts in which new detections come while answers fail, with the faults of each. */
const BAD_ANSWERS: Readonly<Record<string, readonly FaultSpec[]>> = {
  '429 with Retry-After': [{ status: 429, code: 'rate_limited', retry_after: RETRY_AFTER, times: 2 }],
  '500 and 503': [{ status: 503 }, { status: 500 }, { status: 503 }],
  'bodies that end early': [{ cut_after: 200 }, { truncate: 150 }],
  'no answer, and the error of a proxy': [{ reset: true }, { status: 502 }],
};

/** @throws Refused by the lab or the command of the copy; a client that does not finish is part of the evidence */
export async function playExam(options: ExamOptions): Promise<Evidence> {
  try {
    return await new Exam(options).play();
  } finally {
    await options.client?.kill();
    await options.ask('fault clear', {});
  }
}

class Exam {
  readonly #options: ExamOptions;
  readonly #seen = new Evidence();
  /** Number of the last request before the exam. */
  #first = 0;
  /** The filters of the client's first page; null: it has read no page yet. */
  #filters: string | null = null;
  /** Number of the request for the last page that the client read after a change. */
  #lastPage = 0;

  constructor(options: ExamOptions) {
    this.#options = options;
    this.#seen.isRestarted = options.client !== null;
    this.#seen.hasCopy = options.copy !== null;
  }

  async play(): Promise<Evidence> {
    const { ask, onAct } = this.#options;
    // What was tried in this lab before must not fail a good client.
    await ask('fault clear', {});
    await ask('allowance', { used: 0 });
    this.#first = await this.#last();
    for (const [name, act] of this.#acts()) {
      onAct(name);
      await ask('clock', { advance: '6m' });
      try {
        await act();
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        this.#seen.unfinished = `${name}: ${error.message}`;
        break;
      }
    }
    await this.#noteEnd();
    this.#seen.requests = await this.#report(this.#first);
    return this.#seen;
  }

  /** In order. 401 comes last: a client may end with it. */
  #acts(): (readonly [name: string, act: () => Promise<void>])[] {
    return [
      ['the first pages, one of them empty', () => this.#meets([{ empty_page: true }])],
      ...Object.entries(BAD_ANSWERS).map(([name, faults]) => [name, () => this.#meets(faults, 4)] as const),
      ['restarts', () => this.#restarts()],
      ['a version that was delivered before', () => this.#lowerVersion()],
      ['a gap, and its late file', () => this.#gap()],
      ['the copy', () => this.#readCopy()],
      ['401', () => this.#unauthorized()],
    ];
  }

  /** Drops new detections, adds faults, and waits until the client has read past them. */
  async #meets(faults: readonly FaultSpec[], rows = 0): Promise<void> {
    if (rows > 0) await this.#options.ask('drop', { rows });
    for (const fault of faults) await this.#fault(fault);
    await this.#caughtUp();
  }

  async #fault(spec: FaultSpec): Promise<string> {
    const body = { endpoint: 'listChanges', ...spec };
    const { id } = await this.#options.ask<{ id: string }>('fault add', body);
    if (spec.cut_after !== undefined || spec.truncate !== undefined)
      this.#seen.damaging = new Set([...this.#seen.damaging, id]);
    return id;
  }

  /** Waits until every fault has fired, and the client has read a page with has_more false after the last. */
  async #caughtUp(): Promise<void> {
    const last = await this.#last();
    await this.#until('it did not read on to a page with has_more false', last, async (requests) => {
      const faults = await this.#options.ask<{ left: number | null }[]>('fault list', {});
      if (faults.some(({ left }) => left !== 0)) return false;
      const page = this.#followed(requests).at(-1);
      if (page?.has_more !== false || page.fault !== null || !this.#isGood(page)) return false;
      this.#lastPage = page.number;
      return true;
    });
  }

  /** Until it asks again a client may still be storing its last page. One that ended by itself is started again. */
  #askedAgain(): Promise<void> {
    const isAgain = (requests: RequestRecord[]) => this.#followed(requests).length > 0;
    return this.#until('it did not ask again after its last page', this.#lastPage, isAgain);
  }

  /** Requests for changes with the filters of the client's first page: other filters are other streams. */
  #followed(requests: readonly RequestRecord[]): RequestRecord[] {
    const changes = requests.filter(({ endpoint }) => endpoint === 'listChanges');
    const first = changes.find((one) => this.#isGood(one));
    if (first !== undefined) this.#filters ??= filtersOf(first);
    return changes.filter((one) => filtersOf(one) === this.#filters);
  }

  #isGood(request: RequestRecord): boolean {
    return isGoodPage(request, this.#seen);
  }

  async #restarts(): Promise<void> {
    const { client } = this.#options;
    for (const afterMs of KILLS_MS) {
      const last = await this.#last();
      await this.#dropBeforeKill();
      await this.#asks(last, (one) => (one.rows ?? 0) > 0 && this.#isGood(one));
      await sleep(afterMs);
      if (!(await this.#restart())) return;
      await this.#caughtUp();
    }
    if (client !== null) {
      // By its second request a client may have stored the cursor of the first page, but not its rows: the kill shows it.
      // It is killed before, too: its next run gets the rows with its first request.
      await this.#kill(client);
      await this.#killWithin({ delay: HELD, after: 1 });
    }
    // A client that the exam cannot kill only reads a slow page.
    await this.#killWithin({ slow: SLOW_BYTES_A_SECOND });
  }

  /** Drops new detections, and kills the client within an answer. */
  async #killWithin(answer: FaultSpec): Promise<void> {
    await this.#dropBeforeKill();
    const last = await this.#last();
    const id = await this.#fault(answer);
    await this.#asks(last, ({ fault }) => fault === id);
    if (this.#options.client !== null) await this.#restart();
    await this.#options.ask('fault clear', { id });
    await this.#caughtUp();
  }

  async #dropBeforeKill(): Promise<void> {
    const { files } = await this.#options.ask<{ files: { ids: string[] }[] }>('drop', { rows: 3 });
    this.#seen.atKills = new Set([...this.#seen.atKills, ...files.flatMap(({ ids }) => ids)]);
  }

  async #restart(): Promise<boolean> {
    const { client, restart } = this.#options;
    if (client !== null) {
      await this.#kill(client);
      client.start();
    } else {
      this.#seen.isRestarted = await restart();
      if (this.#seen.isRestarted) await this.#note('killed', null);
    }
    return this.#seen.isRestarted;
  }

  async #kill(client: ClientProcess): Promise<void> {
    if (await this.#noteEnd()) return;
    await client.kill();
    await this.#note('killed', null);
  }

  /** Records an end of the client. @returns whether it ended by itself */
  async #noteEnd(): Promise<boolean> {
    const code = this.#options.client?.takeEnd();
    if (code !== undefined) await this.#note('ended', code);
    return code !== undefined;
  }

  async #note(kind: Moment['kind'], code: number | null): Promise<void> {
    this.#seen.moments = [...this.#seen.moments, { kind, after: await this.#last(), code }];
  }

  /** Sends two new versions on two pages, then the first page again; reads the copy while 429 holds the second back. */
  async #lowerVersion(): Promise<void> {
    const { ask, copy } = this.#options;
    if (copy === null) return;
    const detections = await this.#expected();
    const text = detections.findLast(({ content_type }) => content_type === 'text');
    if (text === undefined) return;
    const { id, version, strength } = text;
    const other = strength.score >= 1 ? strength.score - 1 : strength.score + 1;
    for (const score of [other, strength.score]) {
      await ask('correct', { id, score });
      await this.#caughtUp();
    }
    for (let tries = 0; tries < LOWER_TRIES && this.#seen.lower === null; tries += 1) {
      await this.#askedAgain();
      const last = await this.#last();
      const wall = await this.#fault({ status: 429, retry_after: RETRY_AFTER, times: 1000, after: 1 });
      const lower = await this.#fault({ duplicate: true, pages: 2 });
      await this.#asks(last, ({ fault }) => fault === wall);
      const requests = await this.#report(last);
      // A client that asked in between, or started again with since, did not meet the fault.
      const wasDelivered = requests.some(({ fault, rows }) => fault === lower && rows === 1);
      const copied = (await copy()).get(id) ?? null;
      if (wasDelivered) this.#seen.lower = { id, delivered: version + 1, stored: version + 2, copied };
      await ask('fault clear', {});
      await this.#caughtUp();
    }
  }

  async #gap(): Promise<void> {
    const { ask } = this.#options;
    this.#seen.gapAfter = await this.#last();
    await ask('gap', { export: 'newswire', status: 'missing' });
    await this.#caughtUp();
    await ask('late', { rows: 2, export: 'newswire' });
    await this.#caughtUp();
  }

  async #readCopy(): Promise<void> {
    const { copy, client } = this.#options;
    if (copy === null) return;
    await this.#askedAgain();
    const expected = await this.#expected();
    if (client !== null) await this.#kill(client);
    const versions = await copy();
    this.#seen.copy = { versions, expected: new Map(expected.map(({ id, version }) => [id, version])) };
  }

  /** The client may end. If it runs on, its requests are recorded for a while. */
  async #unauthorized(): Promise<void> {
    const last = await this.#last();
    this.#seen.unauthorizedAfter = last;
    await this.#fault({ status: 401, times: 1000 });
    await this.#asks(last, ({ status }) => status === 401);
    const untilMs = performance.now() + WATCH_401_MS;
    while (performance.now() < untilMs && this.#options.client?.isRunning !== false) await sleep(POLL_MS);
  }

  /** The latest version of each detection of the stream that the client follows. */
  async #expected(): Promise<Detection[]> {
    const requests = await this.#report(this.#first);
    const asked = requests.find(({ endpoint, status }) => endpoint === 'listChanges' && status === 200);
    const { cursor, since = '', limit, fields, ...filters } = asked?.parameters ?? {};
    const { now } = await this.#options.ask<{ now: string }>('clock', {});
    const oldest = Date.parse(now) - MONTH_MS + 60_000;
    const start = new Date(Math.max(Date.parse(since) || oldest, oldest)).toISOString();
    const found = new Map<string, Detection>();
    for (let next: Record<string, string> = cursor === undefined ? { since: start } : { cursor }; ; ) {
      const query = new URLSearchParams({ ...filters, ...next, limit: '1000' });
      const page = await this.#options.read<Page>(`/v1/detections/changes?${query}`);
      for (const detection of page.data) found.set(detection.id, detection);
      if (!page.has_more) return [...found.values()];
      next = { cursor: page.next_cursor };
    }
  }

  /** Waits for a certain request of the client. @param after only requests with greater numbers */
  #asks(after: number, isIt: (request: RequestRecord) => boolean): Promise<void> {
    return this.#until('it did not ask for changes', after, (requests) => requests.some(isIt));
  }

  /**
   * Polls the client's requests until a condition holds, and starts the client again if it has ended.
   * @param after only requests with greater numbers
   * @throws Unfinished when the patience is over
   */
  async #until(
    what: string,
    after: number,
    holds: (requests: RequestRecord[]) => boolean | Promise<boolean>,
  ): Promise<void> {
    const { client, patienceMs } = this.#options;
    const untilMs = performance.now() + patienceMs;
    let startMs = 0;
    while (performance.now() < untilMs) {
      const requests = await this.#report(after);
      if (await holds(requests)) return;
      if (client?.isRunning === false && performance.now() >= startMs) {
        await this.#noteEnd();
        client.start();
        startMs = performance.now() + START_AGAIN_MS;
      }
      await sleep(POLL_MS);
    }
    throw new Unfinished(`${what} within ${Math.round(patienceMs / 1000)} seconds`);
  }

  async #report(after: number): Promise<RequestRecord[]> {
    const { requests } = await this.#options.ask<Reported>('report', { after });
    return requests.filter(({ endpoint, user_agent }) => endpoint !== null && user_agent !== EXAMINER);
  }

  /** Number of the last request. */
  async #last(): Promise<number> {
    return (await this.#options.ask<Reported>('report', { after: NEWER })).requests_total;
  }
}
