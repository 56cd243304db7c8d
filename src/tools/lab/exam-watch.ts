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

export class Watch {
  readonly options: ExamOptions;
  readonly seen = new Evidence();
  /** Number of the last request before the exam. */
  #first = 0;
  /** The filters of the client's first page; null: it has read no page yet. */
  #filters: string | null = null;
  /** Number of the request for the last page that the client read after a change. */
  #lastPage = 0;
  /** The cursor that the client had when it had caught up. */
  cursor: string | null = null;
  /** Number of the last request when the clock went on. */
  #pacedAt = 0;

  constructor(options: ExamOptions) {
    this.options = options;
    this.seen.isRestarted = options.client !== null;
    this.seen.hasCopy = options.copy !== null;
  }

  async begin(): Promise<void> {
    this.#first = this.#pacedAt = await this.last();
  }

  /** Adds a fault of requests for changes, unless it names another endpoint. @returns its id */
  async fault(spec: FaultSpec): Promise<string> {
    const added = { endpoint: 'listChanges', ...spec };
    return (await this.options.ask<{ id: string }>('fault add', added)).id;
  }

  /**
   * Waits until every fault has fired, and the client then has everything: it read a page with has_more false that it
   * asked for from now on, or it waits for a change.
   */
  async caughtUp(): Promise<void> {
    const last = await this.last();
    // A client that waits has asked before. Only the newest requests are read again and again.
    const after = this.#filters === null ? 0 : await this.lastAnswered();
    await this.until('it did not read on to a page with has_more false', after, async (requests) => {
      const faults = await this.options.ask<{ endpoint: string; left: number }[]>('fault list', {});
      if (faults.some(({ endpoint, left }) => endpoint === 'listChanges' && left > 0)) return false;
      const page = this.followed(requests).at(-1);
      if (page === undefined) return false;
      const { number, has_more, fault, waits, parameters, cursor_given } = page;
      const isRead = number > last && has_more === false && fault === null && isGoodPage(page);
      if (!isRead && !waits) return false;
      this.#lastPage = waits ? number - 1 : number;
      this.cursor = waits ? (parameters.cursor ?? null) : cursor_given;
      return true;
    });
  }

  /** Until it asks again a client may still be storing its last page. One that ended by itself is started again. */
  askedAgain(): Promise<void> {
    const isAgain = (requests: RequestRecord[]) => this.followed(requests).length > 0;
    return this.until('it did not ask again after its last page', this.#lastPage, isAgain);
  }

  /** Requests for changes with the filters of the client's first page: other filters are other streams. */
  followed(requests: readonly RequestRecord[]): RequestRecord[] {
    const changes = requests.filter(({ endpoint }) => endpoint === 'listChanges');
    const first = changes.find(isGoodPage);
    if (first !== undefined) this.#filters ??= filtersOf(first);
    return changes.filter((change) => filtersOf(change) === this.#filters);
  }

  /** Waits for a certain request for changes. @param after only requests with greater numbers */
  asks(after: number, isIt: (request: RequestRecord) => boolean): Promise<void> {
    return this.until('it did not ask for changes', after, (requests) =>
      requests.some((request) => request.endpoint === 'listChanges' && isIt(request)),
    );
  }

  /** Kills the client and starts it again, unless the user runs it. */
  async restart(): Promise<void> {
    await this.kill();
    this.options.client?.start();
  }

  async kill(): Promise<void> {
    const { client } = this.options;
    if (client === null || (await this.noteEnd())) return;
    await client.kill();
    this.seen.moments.push({ kind: 'killed', after: await this.last(), code: null });
  }

  /** Records an end of the client. @returns whether it ended by itself */
  async noteEnd(): Promise<boolean> {
    const code = this.options.client?.takeEnd();
    if (code === undefined) return false;
    this.seen.moments.push({ kind: 'ended', after: await this.last(), code });
    return true;
  }

  /**
   * Polls the client's requests until a condition holds, and starts the client again if it has ended.
   * @param after only requests with greater numbers
   * @throws Unfinished when the patience is over
   */
  async until(what: string, after: number, holds: (requests: RequestRecord[]) => boolean | Promise<boolean>) {
    const { client, patienceMs } = this.options;
    const untilMs = performance.now() + patienceMs;
    let startMs = 0;
    while (performance.now() < untilMs) {
      const requests = await this.#report(Math.max(after, this.#first));
      if (await holds(requests)) return;
      if (client?.isRunning === false && performance.now() >= startMs) {
        await this.noteEnd();
        client.start();
        startMs = performance.now() + START_AGAIN_MS;
      }
      const last = requests.at(-1)?.number ?? 0;
      if (last >= this.#pacedAt + REQUESTS_A_MINUTE) {
        this.#pacedAt = last;
        await this.options.ask('clock', { advance: '1m' });
      }
      await sleep(POLL_MS);
    }
    throw new Unfinished(`${what} within ${Math.round(patienceMs / 1000)} seconds`);
  }

  /** The client's requests since the beginning of the exam. */
  all(): Promise<RequestRecord[]> {
    return this.#report(this.#first);
  }

  async #report(after: number): Promise<RequestRecord[]> {
    const { requests } = await this.options.ask<Reported>('report', { after });
    return requests.filter(({ endpoint, user_agent }) => endpoint !== null && user_agent !== EXAMINER);
  }

  /** Number of the last request. */
  async last(): Promise<number> {
    return (await this.options.ask<Reported>('report', { after: NEWER })).requests_total;
  }

  /** Number of the last request before those that are not answered yet. */
  async lastAnswered(): Promise<number> {
    const last = await this.last();
    const open = (await this.all()).find(({ status, number }) => status === null && number <= last);
    return open === undefined ? last : open.number - 1;
  }
}
