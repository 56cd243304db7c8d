/**
 * The exam: an hour of bad days by the lab's clock, played to a client that knows only the address and a key. The
 * lab's report records what the client does; exam-grades.ts grades it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultSpec } from './actions.ts';
import type { ClientProcess } from './exam-client.ts';
import {
  type Evidence,
  filtersOf,
  isGoodPage,
  type Lower,
  type Moment,
  type Versions,
} from './exam-grades.ts';
import type { RequestRecord } from './report.ts';

export interface ExamOptions {
  /** Sends a request to the lab. @param path below `/_lab/`; throws if the lab refuses it */
  readonly ask: (method: string, path: string, body?: unknown) => Promise<unknown>;
  /** Reads the API, marked so that the evidence leaves it out. @returns the body of a good answer */
  readonly read: (target: string) => Promise<unknown>;
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
const NEWER = 999_999_999_999_999;
const MONTH_MS = 31 * 24 * 3_600_000;

class Unfinished extends Error {}

interface Detection {
  readonly id: string;
  readonly version: number;
  readonly content_type: string;
  readonly strength: { readonly score: number };
}

/** @throws Refused by the lab or the command of the copy; a client that does not finish is part of the evidence */
export async function playExam(options: ExamOptions): Promise<Evidence> {
  const exam = new Exam(options);
  await exam.begin();
  try {
    for (const [name, act] of exam.acts()) {
      options.onAct(name);
      if (!(await exam.play(name, act))) break;
    }
    return await exam.evidence();
  } finally {
    await options.client?.kill();
    await options.ask('DELETE', 'faults');
  }
}

class Exam {
  readonly #options: ExamOptions;
  readonly #seen = {
    moments: [] as Moment[],
    damaging: new Set<string>(),
    atKills: new Set<string>(),
    unauthorizedAfter: null as number | null,
    gapAfter: null as number | null,
    unfinished: null as string | null,
    lower: null as Lower | null,
    copy: null as Evidence['copy'],
    isRestarted: false,
  };
  /** Number of the last request before the exam. */
  #first = 0;
  /** The filters of the client's first page; null: it has read no page yet. */
  #filters: string | null = null;
  /** Number of the request for the last page that the client read after a change. */
  #lastPage = 0;

  constructor(options: ExamOptions) {
    this.#options = options;
    this.#seen.isRestarted = options.client !== null;
  }

  async begin(): Promise<void> {
    await this.#options.ask('DELETE', 'faults');
    this.#first = (await this.#report(NEWER)).total;
  }

  /** In order. 401 comes last: a client may end with it. */
  acts(): (readonly [name: string, act: () => Promise<void>])[] {
    return [
      ['the first pages, one of them empty', () => this.#through([{ empty_page: true }], 0)],
      [
        '429 with Retry-After',
        () => this.#through([{ status: 429, code: 'rate_limited', retry_after: RETRY_AFTER, times: 2 }]),
      ],
      ['500 and 503', () => this.#through([{ status: 503 }, { status: 500 }, { status: 503 }])],
      ['bodies that end early', () => this.#through([{ cut_after: 200 }, { truncate: 150 }])],
      ['no answer, and the error of a proxy', () => this.#through([{ reset: true }, { status: 502 }])],
      ['restarts', () => this.#restarts()],
      ['a version that was delivered before', () => this.#lowerVersion()],
      ['a gap, and its late file', () => this.#gap()],
      ['the copy', () => this.#readCopy()],
      ['401', () => this.#unauthorized()],
    ];
  }

  /** Plays an act. @returns whether the client finished it */
  async play(name: string, act: () => Promise<void>): Promise<boolean> {
    await this.#options.ask('POST', 'clock', { advance: '6m' });
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof Unfinished)) throw error;
      this.#seen.unfinished = `${name}: ${error.message}`;
      return false;
    }
  }

  async evidence(): Promise<Evidence> {
    await this.#noteEnd();
    const { requests } = await this.#report(this.#first);
    return { ...this.#seen, requests };
  }

  /** Drops new detections, adds faults, and waits until the client has read past them. */
  async #through(faults: readonly FaultSpec[], rows = 4): Promise<void> {
    if (rows > 0) await this.#options.ask('POST', 'drop', { rows });
    for (const fault of faults) await this.#fault(fault);
    await this.#caughtUp();
  }

  async #fault(spec: FaultSpec): Promise<string> {
    const { id } = (await this.#options.ask('POST', 'faults', { endpoint: 'listChanges', ...spec })) as {
      id: string;
    };
    if (spec.cut_after !== undefined || spec.truncate !== undefined) this.#seen.damaging.add(id);
    return id;
  }

  /** Waits until every fault has fired, and the client has read a page with has_more false after the last. */
  async #caughtUp(): Promise<void> {
    const { total } = await this.#report(NEWER);
    await this.#until('it did not read on to a page with has_more false', total, async (requests) => {
      const faults = (await this.#options.ask('GET', 'faults')) as readonly { left: number | null }[];
      if (faults.some(({ left }) => left !== 0)) return false;
      const last = this.#followed(requests).at(-1);
      if (last?.has_more !== false || last.fault !== null || !this.#isGood(last)) return false;
      this.#lastPage = last.number;
      return true;
    });
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
    for (const afterMs of KILLS_MS) {
      const { total } = await this.#report(NEWER);
      await this.#dropBeforeKill();
      await this.#until('it did not ask for changes', total, (requests) =>
        requests.some((one) => (one.rows ?? 0) > 0 && this.#isGood(one)),
      );
      await sleep(afterMs);
      if (!(await this.#restart())) return;
      await this.#caughtUp();
    }
    if (this.#options.client !== null) await this.#killAtNextRequest(this.#options.client);
    await this.#killWithinPage();
  }

  /** By its second request a client may have stored the cursor of the first page, but not its rows: the kill shows it. */
  async #killAtNextRequest(client: ClientProcess): Promise<void> {
    // Killed first: its next run gets the rows with its first request.
    await this.#kill(client);
    await this.#dropBeforeKill();
    await this.#killWithin({ delay: HELD, after: 1 });
  }

  /** A client that the exam cannot kill only reads a slow page. */
  async #killWithinPage(): Promise<void> {
    await this.#dropBeforeKill();
    await this.#killWithin({ slow: SLOW_BYTES_A_SECOND });
  }

  async #killWithin(answer: FaultSpec): Promise<void> {
    const { client, ask } = this.#options;
    const { total } = await this.#report(NEWER);
    const id = await this.#fault(answer);
    await this.#until('it did not ask for changes', total, (requests) =>
      requests.some(({ fault }) => fault === id),
    );
    if (client !== null) await this.#restart();
    await ask('DELETE', `faults/${id}`);
    await this.#caughtUp();
  }

  async #dropBeforeKill(): Promise<void> {
    const { files } = (await this.#options.ask('POST', 'drop', { rows: 3 })) as {
      files: readonly { ids: readonly string[] }[];
    };
    for (const id of files.flatMap(({ ids }) => ids)) this.#seen.atKills.add(id);
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
    const { total } = await this.#report(NEWER);
    this.#seen.moments.push({ kind, after: total, code });
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
      await ask('POST', 'correct', { id, score });
      await this.#caughtUp();
    }
    for (let tries = 0; tries < LOWER_TRIES && this.#seen.lower === null; tries += 1) {
      const { total } = await this.#report(NEWER);
      const wall = await this.#fault({ status: 429, retry_after: RETRY_AFTER, times: 1000, after: 1 });
      const lower = await this.#fault({ duplicate: true, pages: 2 });
      await this.#until('it did not ask for changes', total, (requests) =>
        requests.some(({ fault }) => fault === wall),
      );
      const { requests } = await this.#report(total);
      // A client that asked in between, or started again with since, did not meet the fault.
      const wasDelivered = requests.some(({ fault, rows }) => fault === lower && rows === 1);
      const copied = (await copy()).get(id) ?? null;
      if (wasDelivered) this.#seen.lower = { id, delivered: version + 1, stored: version + 2, copied };
      await ask('DELETE', 'faults');
      await this.#caughtUp();
    }
  }

  async #gap(): Promise<void> {
    const { ask } = this.#options;
    this.#seen.gapAfter = (await this.#report(NEWER)).total;
    await ask('POST', 'gap', { export: 'newswire', status: 'missing' });
    await this.#caughtUp();
    await ask('POST', 'late', { rows: 2, export: 'newswire' });
    await this.#caughtUp();
  }

  async #readCopy(): Promise<void> {
    const { copy, client } = this.#options;
    if (copy === null) return;
    // Until it asks again it may still be storing its last page. A client that ended by itself is started again.
    await this.#until(
      'it did not ask again after its last page',
      this.#lastPage,
      (requests) => this.#followed(requests).length > 0,
    );
    const expected = await this.#expected();
    if (client !== null) await this.#kill(client);
    const versions = await copy();
    this.#seen.copy = { versions, expected: new Map(expected.map(({ id, version }) => [id, version])) };
  }

  /** The client may end. If it runs on, its requests are recorded for a while. */
  async #unauthorized(): Promise<void> {
    const { client } = this.#options;
    const { total } = await this.#report(NEWER);
    this.#seen.unauthorizedAfter = total;
    await this.#options.ask('POST', 'faults', { endpoint: 'listChanges', status: 401, times: 1000 });
    await this.#until('it did not ask for changes', total, (requests) =>
      requests.some(({ status }) => status === 401),
    );
    const untilMs = performance.now() + WATCH_401_MS;
    while (performance.now() < untilMs && client?.isRunning !== false) await sleep(POLL_MS);
  }

  /** The latest version of each detection of the stream that the client follows. */
  async #expected(): Promise<Detection[]> {
    const { requests } = await this.#report(this.#first);
    const asked = requests.find(({ endpoint, status }) => endpoint === 'listChanges' && status === 200);
    const { cursor, since = '', limit, fields, ...filters } = asked?.parameters ?? {};
    const { now } = (await this.#options.ask('GET', 'clock')) as { now: string };
    const oldest = Date.parse(now) - MONTH_MS + 60_000;
    const start = new Date(Math.max(Date.parse(since) || oldest, oldest)).toISOString();
    const found = new Map<string, Detection>();
    for (let next: Record<string, string> = cursor === undefined ? { since: start } : { cursor }; ; ) {
      const query = new URLSearchParams({ ...filters, ...next, limit: '1000' });
      const page = (await this.#options.read(`/v1/detections/changes?${query}`)) as {
        data: readonly Detection[];
        next_cursor: string;
        has_more: boolean;
      };
      for (const detection of page.data) found.set(detection.id, detection);
      if (!page.has_more) return [...found.values()];
      next = { cursor: page.next_cursor };
    }
  }

  /**
   * Polls the client's requests until a condition holds, and starts the client again if it has ended.
   *
   * @param after only requests with greater numbers
   * @throws Unfinished when the patience is over
   */
  async #until(
    what: string,
    after: number,
    holds: (requests: readonly RequestRecord[]) => boolean | Promise<boolean>,
  ): Promise<void> {
    const { client, patienceMs } = this.#options;
    const untilMs = performance.now() + patienceMs;
    let startMs = 0;
    while (performance.now() < untilMs) {
      const { requests } = await this.#report(after);
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

  async #report(after: number): Promise<{ total: number; requests: RequestRecord[] }> {
    const { requests_total, requests } = (await this.#options.ask('GET', `report?after=${after}`)) as {
      requests_total: number;
      requests: RequestRecord[];
    };
    const own = requests.filter(({ endpoint, user_agent }) => endpoint !== null && user_agent !== EXAMINER);
    return { total: requests_total, requests: own };
  }
}
