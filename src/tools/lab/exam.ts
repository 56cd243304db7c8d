/**
 * The exam: a day of bad luck by the lab's clock, played to a client that knows only the address and a key. The lab's
 * report records what the client does; exam-grades.ts grades it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DetectionMembers } from '../../detection/fields.ts';
import type { FaultSpec } from '../../operations/lab.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../../time.ts';
import { type Compared, type Evidence, isGoodPage } from './evidence.ts';
import { type ExamOptions, POLL_MS, Unfinished, Watch } from './exam-watch.ts';
import type { RequestRecord } from './report.ts';

/** How long a client that was refused is watched. */
const WATCH_MS = 4_000;
/** How long after a page was sent the client is killed. */
const KILLS_MS = [0, 3, 10, 30];
/** Delay of an answer that the client must not get before it is killed. */
const HELD = '10m';
const SLOW_BYTES_A_SECOND = 500;
const RETRY_AFTER = 2;
/** So many requests for changes do not come before the second page of a period. */
const STREAM_BEGUN = 3;
const TRIES = 3;
/** The allowance is used up that long before midnight. */
const BEFORE_MIDNIGHT_MS = 6 * SECOND_MS;
const MONTH_MS = 31 * DAY_MS;
/** Pages of a period while the client is to be killed between two. */
const SHORT_PERIOD: FaultSpec = { endpoint: 'listDetections', page_rows: 20, delay: '100ms', times: 1000 };

type Page = Readonly<{ data: readonly DetectionMembers[]; next_cursor: string; has_more: boolean }>;

/** Acts in which new detections come while answers fail, with the faults of each. */
const ERRORS: Readonly<Record<string, readonly FaultSpec[]>> = {
  '429 with Retry-After': [{ status: 429, code: 'rate_limited', retry_after: RETRY_AFTER }],
  '500 and 503': [{ status: 503 }, { status: 500 }, { status: 503 }],
  'no answer, and the error of a proxy': [{ status: 502 }, { reset: true }],
};
/** The first page has has_more true: its cursor is also in its header Link. */
const CUT_BODIES: readonly FaultSpec[] = [{ page_rows: 1, cut_after: 200 }, { truncate: 150 }];

/** @throws Refused by the lab or the command of the copy; a client that does not finish is part of the evidence */
export async function playExam(options: ExamOptions): Promise<Evidence> {
  try {
    return await new Exam(options).play();
  } finally {
    await options.client?.kill();
    await options.ask('fault clear', {});
  }
}

class Exam extends Watch {
  async play(): Promise<Evidence> {
    const { ask, onAct } = this.options;
    // What was tried in this lab before must not fail a good client.
    await ask('fault clear', {});
    await ask('allowance', { used: 0 });
    await this.begin();
    for (const [name, act] of this.#acts()) {
      onAct(name);
      await ask('clock', { advance: '6m' });
      try {
        await act();
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        this.seen.unfinished = `${name}: ${error.message}`;
        break;
      }
    }
    await this.noteEnd();
    this.seen.requests = await this.all();
    return this.seen;
  }

  /** In order. Refusals come last: a client may end with them. */
  #acts(): (readonly [name: string, act: () => Promise<void>])[] {
    return [
      ['a restart within a period', () => this.#restartInPeriod()],
      ['the first pages, one of them empty', () => this.#meetsInPages([{ empty_page: true }])],
      ...Object.entries(ERRORS).map(([name, faults]) => [name, () => this.#meets(faults)] as const),
      ['bodies that end early', () => this.#meetsInPages(CUT_BODIES)],
      ['restarts', () => this.#restarts()],
      ['a version that was delivered before', () => this.#lowerVersion()],
      ['a gap, and its late file', () => this.#gap()],
      ['the copy', () => this.#compareCopy()],
      ['versions after a restore', () => this.#restore()],
      ['the daily allowance', () => this.#allowance()],
      ['400', () => this.#invalid()],
      ['401', () => this.#unauthorized()],
    ];
  }

  /** A client that reads periods first is killed between two pages. */
  async #restartInPeriod(): Promise<void> {
    if (this.options.client === null) return;
    const id = await this.fault(SHORT_PERIOD);
    let isWithin = false;
    await this.until('it did not ask for detections', 0, (requests) => {
      const periods = requests.filter(({ endpoint }) => endpoint === 'listDetections');
      isWithin = periods.some(({ parameters }) => parameters.cursor !== undefined);
      const changes = requests.filter(({ endpoint }) => endpoint === 'listChanges');
      // A client that reads both may begin the stream before it goes on with the periods.
      return isWithin || changes.length > (periods.length === 0 ? 0 : STREAM_BEGUN);
    });
    if (isWithin) await this.restart();
    this.seen.isKilledInWalk = isWithin;
    await this.options.ask('fault clear', { id });
  }

  /** Adds faults, drops new detections, and waits until the client has read past them. */
  async #meets(faults: readonly FaultSpec[]): Promise<void> {
    for (const fault of faults) await this.fault(fault);
    await this.#drop();
    await this.caughtUp();
  }

  /** The same for faults of pages with rows. */
  async #meetsInPages(faults: readonly FaultSpec[]): Promise<void> {
    await this.#addForPages(faults, () => this.#drop());
    await this.caughtUp();
  }

  /** @param drop the detections that the last fault meets first @returns the id of the last fault */
  async #addForPages(faults: readonly FaultSpec[], drop: () => Promise<unknown>): Promise<string> {
    const before = await this.lastAnswered();
    // A client that waits already would get its next page without a fault.
    const wall = await this.fault({ status: 503 });
    let last = '';
    for (const fault of faults) last = await this.fault(fault);
    await this.#drop();
    await this.until('it did not ask again after 503', before, (requests) => {
      const refused = requests.findIndex(({ fault }) => fault === wall);
      return refused >= 0 && requests.slice(refused + 1).some(({ endpoint }) => endpoint === 'listChanges');
    });
    await drop();
    return last;
  }

  async #restarts(): Promise<void> {
    const { client } = this.options;
    for (const afterMs of client === null ? [] : KILLS_MS) {
      const last = await this.lastAnswered();
      await this.#dropAtKill();
      await this.asks(last, (request) => (request.rows ?? 0) > 0 && isGoodPage(request));
      await sleep(afterMs);
      await this.restart();
      await this.caughtUp();
    }
    if (client !== null) await this.#killAtSecondRequest();
    // A client that the exam cannot kill only reads a slow page.
    const last = await this.last();
    const id = await this.#addForPages([{ slow: SLOW_BYTES_A_SECOND }], () => this.#dropAtKill());
    await this.asks(last, ({ fault }) => fault === id);
    await this.restart();
    await this.options.ask('fault clear', { id });
    await this.caughtUp();
  }

  /**
   * By its second request a client may have stored the cursor of the first page, but not its rows: the kill shows it.
   * It is killed before, too: its next run gets the rows with its first request.
   */
  async #killAtSecondRequest(): Promise<void> {
    await this.kill();
    await this.#dropAtKill();
    const last = await this.last();
    const id = await this.fault({ delay: HELD, after: 1 });
    await this.until('it did not ask for changes', last, (requests) => {
      return requests.filter(({ endpoint }) => endpoint === 'listChanges').length > 1;
    });
    await this.restart();
    await this.options.ask('fault clear', { id });
    await this.caughtUp();
  }

  async #dropAtKill(): Promise<void> {
    for (const id of await this.#drop()) this.seen.atKills.add(id);
  }

  /** @returns the ids of new detections, of both content types */
  async #drop(): Promise<string[]> {
    const { files } = await this.options.ask<{ files: { ids: string[] }[] }>('drop', { rows: 4 });
    return files.flatMap(({ ids }) => ids);
  }

  /** Sends two new versions on two pages, then the first page again; reads the copy while 429 holds the second back. */
  async #lowerVersion(): Promise<void> {
    const { ask, copy } = this.options;
    if (copy === null) return;
    const text = (await this.#expected()).findLast(({ content_type }) => content_type === 'text');
    if (text === undefined) return;
    const { id, version, strength } = text;
    await ask('correct', { id, score: strength.score >= 50 ? 10 : 90 });
    await this.caughtUp();
    const { cursor } = this;
    await ask('correct', { id, score: strength.score });
    await this.caughtUp();
    for (let tries = 0; tries < TRIES && this.seen.lower === null; tries += 1) {
      await this.askedAgain();
      const last = await this.last();
      // A client that waits asks again after the page of one more detection.
      const more = this.followed(await this.all()).at(-1)?.waits === true ? 1 : 0;
      const wall = await this.fault({ status: 429, retry_after: RETRY_AFTER, times: 1000, after: 1 });
      const lower = await this.fault({ duplicate: true, pages: 2 + tries + more });
      await ask('drop', { rows: 1, export: 'newswire' });
      await this.asks(last, ({ fault }) => fault === wall);
      const requests = await this.all();
      // A client that asked in between, or started again with since, did not meet the fault.
      const wasDelivered = requests.some((one) => one.fault === lower && one.cursor_given === cursor);
      const copied = (await copy()).versions.get(id) ?? null;
      if (wasDelivered) this.seen.lower = { id, delivered: version + 1, stored: version + 2, copied };
      await ask('fault clear', {});
      await this.caughtUp();
    }
  }

  async #gap(): Promise<void> {
    const { ask } = this.options;
    await ask('gap', { export: 'newswire', status: 'missing' });
    await this.caughtUp();
    await ask('late', { rows: 2, export: 'newswire' });
    await this.caughtUp();
  }

  async #readCopy(): Promise<Compared | null> {
    const { copy } = this.options;
    if (copy === null) return null;
    await this.askedAgain();
    const expected = await this.#expected();
    await this.kill();
    return { ...(await copy()), expected: new Map(expected.map(({ id, version }) => [id, version])) };
  }

  async #compareCopy(): Promise<void> {
    this.seen.copy = await this.#readCopy();
  }

  async #restore(): Promise<void> {
    await this.options.ask('restore', {});
    await this.caughtUp();
    this.seen.restored = await this.#readCopy();
  }

  /** The allowance is used up a few seconds before the next day, so the client need not wait for hours. */
  async #allowance(): Promise<void> {
    const { ask } = this.options;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const last = await this.last();
      const { now } = await ask<{ now: string }>('clock', {});
      const nextDayMs = Math.ceil((Date.parse(now) + BEFORE_MIDNIGHT_MS) / DAY_MS) * DAY_MS;
      await ask('clock', { to: formatMs(nextDayMs - BEFORE_MIDNIGHT_MS) });
      await ask('allowance', {});
      await ask('drop', { rows: 2, export: 'newswire' });
      await this.caughtUp();
      const requests = await this.all();
      if (requests.some(({ number, code }) => number > last && code === 'daily_allowance')) return;
    }
  }

  /** A subscription that the client names is removed; otherwise, a fault refuses its request. */
  async #invalid(): Promise<void> {
    const { ask, client, removeSubscription } = this.options;
    // A client that its user runs may end now: 401 is what it meets instead.
    if (client === null) return;
    await this.askedAgain();
    this.seen.invalidAfter = await this.last();
    const named = this.followed(await this.all()).at(-1)?.parameters.subscription_id;
    const removed = named?.split(',').at(-1);
    if (removed === undefined) await this.fault({ status: 400, times: 1000 });
    else await removeSubscription(Number(removed));
    const isNamed = ({ parameters }: RequestRecord) =>
      removed === undefined || parameters.subscription_id?.split(',').includes(removed) === true;
    // A client may learn of the removal from GET /v1/me, and never be refused.
    await this.#watchRefused((one) => one.status === 400 || (isGoodPage(one) && !isNamed(one)));
    await ask('fault clear', {});
  }

  async #unauthorized(): Promise<void> {
    this.seen.unauthorizedAfter = await this.last();
    await this.fault({ status: 401, times: 1000 });
    await this.#watchRefused(({ status }) => status === 401);
  }

  /** The client may end. If it runs on, its requests are recorded for a while. */
  async #watchRefused(isRefused: (request: RequestRecord) => boolean): Promise<void> {
    const last = await this.lastAnswered();
    await this.#drop();
    await this.asks(last, isRefused);
    const untilMs = performance.now() + WATCH_MS;
    while (performance.now() < untilMs && this.options.client?.isRunning !== false) await sleep(POLL_MS);
  }

  /** The latest version of each detection that the client can have: of its stream, or of all that its periods have. */
  async #expected(): Promise<DetectionMembers[]> {
    const requests = await this.all();
    const asked = requests.find(({ endpoint, status }) => endpoint === 'listChanges' && status === 200);
    const { cursor, since = '', limit, fields, ...filters } = asked?.parameters ?? {};
    const { now } = await this.options.ask<{ now: string }>('clock', {});
    const oldest = Date.parse(now) - MONTH_MS + 60_000;
    const isWalk = requests.some(({ endpoint }) => endpoint === 'listDetections');
    const sinceMs = isWalk ? oldest : Math.max(Date.parse(since) || oldest, oldest);
    const start = { since: new Date(sinceMs).toISOString() };
    const found = new Map<string, DetectionMembers>();
    for (let next: Record<string, string> = cursor === undefined ? start : { cursor }; ; ) {
      const query = new URLSearchParams({ ...filters, ...next, limit: '1000' });
      const page = await this.options.read<Page>(`/v1/detections/changes?${query}`);
      for (const detection of page.data) found.set(detection.id, detection);
      if (!page.has_more) return [...found.values()];
      next = { cursor: page.next_cursor };
    }
  }
}
