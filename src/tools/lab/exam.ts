/**
 * The exam: a day of bad luck by the lab's clock, played to a client that knows only the address and a key. The lab's
 * report records what the client does; exam-grades.ts grades it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DetectionMembers } from '../../detection/fields.ts';
import type { FaultSpec } from '../../operations/lab.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../../time.ts';
import { type Compared, type Evidence, isGoodPage } from './evidence.ts';
import { createWatch, type ExamOptions, POLL_MS, Unfinished, type Watch } from './exam-watch.ts';
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
  const { ask, client, onAct } = options;
  const watch = createWatch(options);
  const { seen } = watch;
  try {
    // What was tried in this lab before must not fail a good client.
    await ask('fault clear', {});
    await ask('allowance', { used: 0 });
    await watch.begin();
    for (const [name, act] of actsOf(options, watch)) {
      onAct(name);
      await ask('clock', { advance: '6m' });
      try {
        await act();
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        seen.unfinished = `${name}: ${error.message}`;
        break;
      }
    }
    await watch.noteEnd();
    seen.requests = await watch.all();
    return seen;
  } finally {
    await client?.kill();
    await ask('fault clear', {});
  }
}

type Act = readonly [name: string, play: () => Promise<void>];

/** In order. Refusals come last: a client may end with them. */
function actsOf({ ask, client, copy, read, removeSubscription }: ExamOptions, watch: Watch): Act[] {
  const { seen, addFault, caughtUp, askedAgain, followed, asks, until, all, lastNumber } = watch;
  const { lastAnswered, restart, kill } = watch;

  /** A client that reads periods first is killed between two pages. */
  async function restartInPeriod(): Promise<void> {
    if (client === null) return;
    const id = await addFault(SHORT_PERIOD);
    let isWithin = false;
    await until('it did not ask for detections', 0, (requests) => {
      const periods = requests.filter(({ endpoint }) => endpoint === 'listDetections');
      isWithin = periods.some(({ parameters }) => parameters.cursor !== undefined);
      const changes = requests.filter(({ endpoint }) => endpoint === 'listChanges');
      // A client that reads both may begin the stream before it goes on with the periods.
      return isWithin || changes.length > (periods.length === 0 ? 0 : STREAM_BEGUN);
    });
    if (isWithin) await restart();
    seen.isKilledInWalk = isWithin;
    await ask('fault clear', { id });
  }

  /** Adds faults, drops new detections, and waits until the client has read past them. */
  async function meets(faults: readonly FaultSpec[]): Promise<void> {
    for (const fault of faults) await addFault(fault);
    await dropRows();
    await caughtUp();
  }

  /** The same for faults of pages with rows. */
  async function meetsInPages(faults: readonly FaultSpec[]): Promise<void> {
    await addForPages(faults, dropRows);
    await caughtUp();
  }

  /** @param drop the detections that the last fault meets first @returns the id of the last fault */
  async function addForPages(faults: readonly FaultSpec[], drop: () => Promise<unknown>): Promise<string> {
    const before = await lastAnswered();
    // A client that waits already would get its next page without a fault.
    const wall = await addFault({ status: 503 });
    let last = '';
    for (const fault of faults) last = await addFault(fault);
    await dropRows();
    await until('it did not ask again after 503', before, (requests) => {
      const refused = requests.findIndex(({ fault }) => fault === wall);
      return refused >= 0 && requests.slice(refused + 1).some(({ endpoint }) => endpoint === 'listChanges');
    });
    await drop();
    return last;
  }

  async function restarts(): Promise<void> {
    for (const afterMs of client === null ? [] : KILLS_MS) {
      const last = await lastAnswered();
      await dropAtKill();
      await asks(last, (request) => (request.rows ?? 0) > 0 && isGoodPage(request));
      await sleep(afterMs);
      await restart();
      await caughtUp();
    }
    if (client !== null) await killAtSecondRequest();
    // A client that the exam cannot kill only reads a slow page.
    const last = await lastNumber();
    const id = await addForPages([{ slow: SLOW_BYTES_A_SECOND }], dropAtKill);
    await asks(last, ({ fault }) => fault === id);
    await restart();
    await ask('fault clear', { id });
    await caughtUp();
  }

  /**
   * By its second request a client may have stored the cursor of the first page, but not its rows: the kill shows it.
   * It is killed before, too: its next run gets the rows with its first request.
   */
  async function killAtSecondRequest(): Promise<void> {
    await kill();
    await dropAtKill();
    const last = await lastNumber();
    const id = await addFault({ delay: HELD, after: 1 });
    await until('it did not ask for changes', last, (requests) => {
      return requests.filter(({ endpoint }) => endpoint === 'listChanges').length > 1;
    });
    await restart();
    await ask('fault clear', { id });
    await caughtUp();
  }

  async function dropAtKill(): Promise<void> {
    for (const id of await dropRows()) seen.atKills.add(id);
  }

  /** @returns the ids of new detections, of both content types */
  async function dropRows(): Promise<string[]> {
    const { files } = await ask<{ files: { ids: string[] }[] }>('drop', { rows: 4 });
    return files.flatMap(({ ids }) => ids);
  }

  /** Sends two new versions on two pages, then the first page again; reads the copy while 429 holds the second back. */
  async function lowerVersion(): Promise<void> {
    if (copy === null) return;
    const text = (await expectedNow()).findLast(({ content_type }) => content_type === 'text');
    if (text === undefined) return;
    const { id, version, strength } = text;
    await ask('correct', { id, score: strength.score >= 50 ? 10 : 90 });
    const cursor = await caughtUp();
    await ask('correct', { id, score: strength.score });
    await caughtUp();
    for (let tries = 0; tries < TRIES && seen.lower === null; tries += 1) {
      await askedAgain();
      const last = await lastNumber();
      // A client that waits asks again after the page of one more detection.
      const more = followed(await all()).at(-1)?.waits === true ? 1 : 0;
      const wall = await addFault({ status: 429, retry_after: RETRY_AFTER, times: 1000, after: 1 });
      const lower = await addFault({ duplicate: true, pages: 2 + tries + more });
      await ask('drop', { rows: 1, export: 'newswire' });
      await asks(last, ({ fault }) => fault === wall);
      const requests = await all();
      // A client that asked in between, or started again with since, did not meet the fault.
      const wasDelivered = requests.some((one) => one.fault === lower && one.cursor_given === cursor);
      const copied = (await copy()).versions.get(id) ?? null;
      if (wasDelivered) seen.lower = { id, delivered: version + 1, stored: version + 2, copied };
      await ask('fault clear', {});
      await caughtUp();
    }
  }

  async function gap(): Promise<void> {
    await ask('gap', { export: 'newswire', status: 'missing' });
    await caughtUp();
    await ask('late', { rows: 2, export: 'newswire' });
    await caughtUp();
  }

  async function readCopy(): Promise<Compared | null> {
    if (copy === null) return null;
    await askedAgain();
    const expected = await expectedNow();
    await kill();
    return { ...(await copy()), expected: new Map(expected.map(({ id, version }) => [id, version])) };
  }

  async function compareCopy(): Promise<void> {
    seen.copy = await readCopy();
  }

  async function restore(): Promise<void> {
    await ask('restore', {});
    await caughtUp();
    seen.restored = await readCopy();
  }

  /** The allowance is used up a few seconds before the next day, so the client need not wait for hours. */
  async function allowance(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const last = await lastNumber();
      const { now } = await ask<{ now: string }>('clock', {});
      const nextDayMs = Math.ceil((Date.parse(now) + BEFORE_MIDNIGHT_MS) / DAY_MS) * DAY_MS;
      await ask('clock', { to: formatMs(nextDayMs - BEFORE_MIDNIGHT_MS) });
      await ask('allowance', {});
      await ask('drop', { rows: 2, export: 'newswire' });
      await caughtUp();
      const requests = await all();
      if (requests.some(({ number, code }) => number > last && code === 'daily_allowance')) return;
    }
  }

  /** A subscription that the client names is removed; otherwise, a fault refuses its request. */
  async function invalid(): Promise<void> {
    // A client that its user runs may end now: 401 is what it meets instead.
    if (client === null) return;
    await askedAgain();
    seen.invalidAfter = await lastNumber();
    const named = followed(await all()).at(-1)?.parameters.subscription_id;
    const removed = named?.split(',').at(-1);
    if (removed === undefined) await addFault({ status: 400, times: 1000 });
    else await removeSubscription(Number(removed));
    const isNamed = ({ parameters }: RequestRecord) =>
      removed === undefined || parameters.subscription_id?.split(',').includes(removed) === true;
    // A client may learn of the removal from GET /v1/me, and never be refused.
    await watchRefused((one) => one.status === 400 || (isGoodPage(one) && !isNamed(one)));
    await ask('fault clear', {});
  }

  async function unauthorized(): Promise<void> {
    seen.unauthorizedAfter = await lastNumber();
    await addFault({ status: 401, times: 1000 });
    await watchRefused(({ status }) => status === 401);
  }

  /** The client may end. If it runs on, its requests are recorded for a while. */
  async function watchRefused(isRefused: (request: RequestRecord) => boolean): Promise<void> {
    const last = await lastAnswered();
    await dropRows();
    await asks(last, isRefused);
    const untilMs = performance.now() + WATCH_MS;
    while (performance.now() < untilMs && client?.isRunning !== false) await sleep(POLL_MS);
  }

  /** The latest version of each detection that the client can have: of its stream, or of all that its periods have. */
  async function expectedNow(): Promise<DetectionMembers[]> {
    const requests = await all();
    const asked = requests.find(({ endpoint, status }) => endpoint === 'listChanges' && status === 200);
    const { cursor, since = '', limit, fields, ...filters } = asked?.parameters ?? {};
    const { now } = await ask<{ now: string }>('clock', {});
    const oldest = Date.parse(now) - MONTH_MS + 60_000;
    const isWalk = requests.some(({ endpoint }) => endpoint === 'listDetections');
    const sinceMs = isWalk ? oldest : Math.max(Date.parse(since) || oldest, oldest);
    const start = { since: new Date(sinceMs).toISOString() };
    const found = new Map<string, DetectionMembers>();
    for (let next: Record<string, string> = cursor === undefined ? start : { cursor }; ; ) {
      const query = new URLSearchParams({ ...filters, ...next, limit: '1000' });
      const page = await read<Page>(`/v1/detections/changes?${query}`);
      for (const detection of page.data) found.set(detection.id, detection);
      if (!page.has_more) return [...found.values()];
      next = { cursor: page.next_cursor };
    }
  }

  return [
    ['a restart within a period', restartInPeriod],
    ['the first pages, one of them empty', () => meetsInPages([{ empty_page: true }])],
    ...Object.entries(ERRORS).map(([name, faults]): Act => [name, () => meets(faults)]),
    ['bodies that end early', () => meetsInPages(CUT_BODIES)],
    ['restarts', restarts],
    ['a version that was delivered before', lowerVersion],
    ['a gap, and its late file', gap],
    ['the copy', compareCopy],
    ['versions after a restore', restore],
    ['the daily allowance', allowance],
    ['400', invalid],
    ['401', unauthorized],
  ];
}
