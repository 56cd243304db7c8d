/** The report of a lab: the newest requests of clients, with the faults that they met. */
import type { IncomingMessage } from 'node:http';
import { now } from '../../clock.ts';
import { splitTarget } from '../../http/routes.ts';

export type RequestRecord = ReturnType<typeof recordOf>;

/** What is known of a request once it is answered; all of it null before, and without an answer. */
class Answered {
  key_id: string | null = null;
  /** Id of the fault that it met. */
  fault: string | null = null;
  status: number | null = null;
  /** Null for a good answer. */
  code: string | null = null;
  retry_after: number | null = null;
  /** The rows of a page, before a fault changed it. */
  rows: number | null = null;
  cursor_given: string | null = null;
  has_more: boolean | null = null;
  as_of: string | null = null;
  /** Whether the whole answer was sent before the connection ended. */
  complete: boolean | null = null;
  finished_at: string | null = null;
  real_finished_at: string | null = null;
}

const REQUESTS_MAX = 20_000;

export class Report {
  #requests: RequestRecord[] = [];
  #count = 0;

  /** @param waits whether the request waits for a change at the moment */
  begin(request: IncomingMessage, endpoint: string | null, waits: () => boolean): RequestRecord {
    this.#count += 1;
    const record = recordOf(this.#count, request, endpoint, waits);
    this.#requests.push(record);
    if (this.#requests.length > REQUESTS_MAX) this.#requests.shift();
    return record;
  }

  /**
   * Finds the request for changes whose page led to a cursor, past empty pages.
   * @param pages how many pages with rows to go back; undefined: one
   * @returns its parameters, with `pages` limited to that page; null: there is none
   */
  pageBefore(cursor: string, pages = 1): Readonly<Record<string, string>> | null {
    let wanted = cursor;
    let left = pages;
    for (const { endpoint, cursor_given, rows, parameters } of this.#requests.toReversed()) {
      if (endpoint !== 'listChanges' || cursor_given !== wanted) continue;
      if ((rows ?? 0) > 0) left -= 1;
      if (left === 0) return pages === 1 ? parameters : { ...parameters, limit: `${rows}` };
      if (parameters.cursor === undefined) return null;
      wanted = parameters.cursor;
    }
    return null;
  }

  /** @param after only requests with greater numbers */
  read(after: number) {
    return { requests_total: this.#count, requests: this.#requests.filter(({ number }) => number > after) };
  }

  /** Numbers continue. */
  clear(): void {
    this.#requests = [];
  }
}

/** Notes the end of an answer. @param complete whether all of it was sent */
export function finish(record: RequestRecord, complete: boolean): void {
  const { at: finished_at, real_at: real_finished_at } = times();
  Object.assign(record, { complete, finished_at, real_finished_at });
}

/**
 * @param number from 1, in the order of arrival
 * @returns `at`, `real_at`: when it arrived, by the lab's clock and by the machine's; `endpoint`: its operationId; null for a
 *   path or method that does not exist; `waits`: whether it waits at the head of the stream, and has seen every change so far
 */
function recordOf(number: number, request: IncomingMessage, endpoint: string | null, waits: () => boolean) {
  const { path, query } = splitTarget(request.url ?? '');
  const { 'user-agent': userAgent, prefer } = request.headers;
  const parameters = new URLSearchParams(query);
  const names = [...parameters.keys()];
  return {
    number,
    ...times(),
    method: request.method ?? '',
    path,
    endpoint,
    parameters: Object.fromEntries(names.map((name) => [name, parameters.getAll(name).join()])),
    user_agent: userAgent ?? null,
    prefer: prefer === undefined ? null : String(prefer),
    get waits(): boolean {
      return this.status === null && waits();
    },
    ...new Answered(),
  };
}

const times = () => ({ at: new Date(now()).toISOString(), real_at: new Date().toISOString() });
