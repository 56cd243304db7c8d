/**
 * The exam's view of a client: what the lab's report says about its requests, and whether its process runs. Waits until
 * the client has done something; a client that polls and one that waits at the service are told apart by the report.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultSpec, LabName } from '../../operations/lab.ts';
import type { ClientProcess } from './client-process.ts';
import { type Copied, Evidence, filtersOf, isGoodPage } from './evidence.ts';
import type { Report, RequestRecord } from './report.ts';

export interface ExamOptions {
  /** Has the lab do an operation. @throws Refused by it */
  readonly ask: <Answer>(name: LabName, given: object) => Promise<Answer>;
  readonly removeSubscription: (id: number) => Promise<unknown>;
  /** Reads the API, marked so that the evidence leaves it out. @returns the body of a good answer */
  readonly read: <Answer>(target: string) => Promise<Answer>;
  /** Null: the user runs it. */
  readonly client: ClientProcess | null;
  /** Null: there is no command that prints the copy. */
  readonly copy: (() => Promise<Copied>) | null;
  /** The longest time of one act, in milliseconds of the real clock. */
  readonly patienceMs: number;
  readonly onAct: (name: string) => void;
}

/** User agent of the exam's own requests to the API. */
export const EXAMINER = 'wirewatch-lab-exam';

export const POLL_MS = 20;
const START_AGAIN_MS = 500;
/** A client with small pages must not meet the limit of requests a minute: the lab's clock goes on instead. */
const REQUESTS_A_MINUTE = 50;
/** Greater than the number of any request: the report then has their count alone. */
const NEWER = Number.MAX_SAFE_INTEGER;

export class Unfinished extends Error {}

type Reported = ReturnType<Report['read']>;
type Condition = (requests: RequestRecord[]) => boolean | Promise<boolean>;

export type Watch = ReturnType<typeof createWatch>;

export function createWatch({ ask, client, copy, patienceMs }: ExamOptions) {
  const seen = new Evidence();
  seen.isRestarted = client !== null;
  seen.hasCopy = copy !== null;
  /** Number of the last request before the exam. */
  let first = 0;
  /** The filters of the client's first page; null: it has read no page yet. */
  let filters: string | null = null;
  /** Number of the request for the last page that the client read after a change. */
  let lastPage = 0;
  /** Number of the last request when the clock went on. */
  let pacedAt = 0;

  async function begin(): Promise<void> {
    first = pacedAt = await lastNumber();
  }

  /** Adds a fault of requests for changes, unless it names another endpoint. @returns its id */
  const addFault = async (spec: FaultSpec): Promise<string> =>
    (await ask<{ id: string }>('fault add', { endpoint: 'listChanges', ...spec })).id;

  /**
   * Waits until every fault has fired, and the client then has everything: it read a page with has_more false that it
   * asked for from now on, or it waits for a change.
   * @returns the cursor that the client then has
   */
  async function caughtUp(): Promise<string | null> {
    let cursor: string | null = null;
    const last = await lastNumber();
    // A client that waits has asked before. Only the newest requests are read again and again.
    const after = filters === null ? 0 : await lastAnswered();
    await until('it did not read on to a page with has_more false', after, async (requests) => {
      const faults = await ask<{ endpoint: string; left: number }[]>('fault list', {});
      if (faults.some(({ endpoint, left }) => endpoint === 'listChanges' && left > 0)) return false;
      const page = followed(requests).at(-1);
      if (page === undefined) return false;
      const { number, has_more, fault, waits, parameters, cursor_given } = page;
      const isRead = number > last && has_more === false && fault === null && isGoodPage(page);
      if (!isRead && !waits) return false;
      lastPage = waits ? number - 1 : number;
      cursor = waits ? (parameters.cursor ?? null) : cursor_given;
      return true;
    });
    return cursor;
  }

  /** Until it asks again a client may still be storing its last page. One that ended by itself is started again. */
  const askedAgain = () =>
    until('it did not ask again after its last page', lastPage, (requests) => followed(requests).length > 0);

  /** Requests for changes with the filters of the client's first page: other filters are other streams. */
  function followed(requests: readonly RequestRecord[]): RequestRecord[] {
    const changes = requests.filter(({ endpoint }) => endpoint === 'listChanges');
    const page = changes.find(isGoodPage);
    if (page !== undefined) filters ??= filtersOf(page);
    return changes.filter((change) => filtersOf(change) === filters);
  }

  /** Waits for a certain request for changes. @param after only requests with greater numbers */
  const asks = (after: number, isIt: (request: RequestRecord) => boolean) =>
    until('it did not ask for changes', after, (requests) =>
      requests.some((request) => request.endpoint === 'listChanges' && isIt(request)),
    );

  /** Kills the client and starts it again, unless the user runs it. */
  async function restart(): Promise<void> {
    await kill();
    client?.start();
  }

  async function kill(): Promise<void> {
    if (client === null || (await noteEnd())) return;
    await client.kill();
    seen.moments.push({ kind: 'killed', after: await lastNumber(), code: null });
  }

  /** Records an end of the client. @returns whether it ended by itself */
  async function noteEnd(): Promise<boolean> {
    const code = client?.takeEnd();
    if (code === undefined) return false;
    seen.moments.push({ kind: 'ended', after: await lastNumber(), code });
    return true;
  }

  /**
   * Polls the client's requests until a condition holds, and starts the client again if it has ended.
   * @param after only requests with greater numbers
   * @throws Unfinished when the patience is over
   */
  async function until(what: string, after: number, holds: Condition): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    let startMs = 0;
    while (performance.now() < untilMs) {
      const requests = await report(Math.max(after, first));
      if (await holds(requests)) return;
      if (client?.isRunning === false && performance.now() >= startMs) {
        await noteEnd();
        client.start();
        startMs = performance.now() + START_AGAIN_MS;
      }
      const last = requests.at(-1)?.number ?? 0;
      if (last >= pacedAt + REQUESTS_A_MINUTE) {
        pacedAt = last;
        await ask('clock', { advance: '1m' });
      }
      await sleep(POLL_MS);
    }
    throw new Unfinished(`${what} within ${Math.round(patienceMs / 1000)} seconds`);
  }

  /** The client's requests since the beginning of the exam. */
  const all = () => report(first);

  async function report(after: number): Promise<RequestRecord[]> {
    const { requests } = await ask<Reported>('report', { after });
    return requests.filter(({ endpoint, user_agent }) => endpoint !== null && user_agent !== EXAMINER);
  }

  /** Number of the last request. */
  const lastNumber = async (): Promise<number> =>
    (await ask<Reported>('report', { after: NEWER })).requests_total;

  /** Number of the last request before those that are not answered yet. */
  async function lastAnswered(): Promise<number> {
    const last = await lastNumber();
    const open = (await all()).find(({ status, number }) => status === null && number <= last);
    return open === undefined ? last : open.number - 1;
  }

  const waits = { until, asks, askedAgain, caughtUp };
  return { seen, begin, addFault, followed, all, lastNumber, lastAnswered, restart, kill, noteEnd, ...waits };
}
