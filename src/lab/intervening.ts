/** What befalls one request of a client: it is noted, and the fault that it meets is applied where the real one would be. */
import type { IncomingMessage } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { Intervention } from '../http/interventions.ts';
import { nextLink } from '../http/next-link.ts';
import type { Exchange } from '../http/reply.ts';
import { type Answer, type Route, splitTarget } from '../http/routes.ts';
import { codeOf, type Fault } from './faults.ts';
import { allowOf, type Situation, throwAtCredential, throwAtEndpoint, tokenAnswer } from './problems.ts';
import type { RequestRecord } from './report.ts';
import { cutConnection, delayOf, sendAsProxy, sendTampered } from './sending.ts';

export interface Begun {
  readonly request: IncomingMessage;
  readonly exchange: Exchange;
  /** Null for a path or method that does not exist: nothing is done to it. */
  readonly route: Route | null;
  readonly endpoint: string | null;
  readonly fault: Fault | null;
  readonly record: RequestRecord;
  readonly baseUrl: string;
}

export interface Surroundings {
  /** The setting, for an account without an allowance of its own. */
  readonly dailyRows: number;
  /** The cursor at which the page of a request for changes begins. @param query as sent */
  readonly startCursor: (query: string) => string;
  /** A fault had no chance: the request ended before. */
  readonly onUnused: (fault: Fault) => void;
  readonly onFinished: (record: RequestRecord, isComplete: boolean) => void;
}

export class Intervening implements Intervention {
  readonly isTaken: boolean;
  readonly #begun: Begun;
  readonly #around: Surroundings;
  /** Where the fault is an error with a code. */
  readonly #error: Situation | null;
  /** What the endpoint answered with, where that is a page. */
  #page: { data: unknown[] } | null = null;
  #isApplied = false;

  constructor(begun: Begun, around: Surroundings) {
    const { request, exchange, route, endpoint, fault, record } = begun;
    this.#begun = begun;
    this.#around = around;
    const code = fault === null ? null : codeOf(fault.spec);
    const { dailyRows } = around;
    this.#error =
      route === null || endpoint === null || fault === null || code === null
        ? null
        : { code, request, exchange, route, endpoint, retryAfter: fault.spec.retry_after, dailyRows };
    const { response } = exchange;
    response.once('close', () => around.onFinished(record, response.writableFinished));
    const { status, close, reset, cut_after } = fault?.spec ?? {};
    const isProxy = status === 502 || status === 504;
    this.isTaken = isProxy || close === true || (reset === true && cut_after === undefined);
    if (fault === null || !this.isTaken) return;
    record.fault = fault.id;
    const act = () => (isProxy ? sendAsProxy(response, fault, record) : cutConnection(request.socket, reset));
    const delayMs = delayOf(fault);
    if (delayMs === 0) act();
    else setTimeout(act, delayMs).unref();
  }

  atCredential(): void {
    const error = this.#error;
    if (error !== null) this.#applying(() => throwAtCredential(error));
  }

  atEndpoint(credential: Credential | null): void {
    const error = this.#error;
    if (error !== null) this.#applying(() => throwAtEndpoint(error, credential));
  }

  answered(answer: Answer): Answer {
    const { fault, endpoint } = this.#begun;
    if (endpoint === 'listChanges' || endpoint === 'listDetections') this.#notePage(answer);
    const replaced =
      this.#error === null
        ? fault?.spec.empty_page === true
          ? this.#emptyPage(answer)
          : null
        : (tokenAnswer(this.#error) ?? this.#degradedHealth(answer));
    if (replaced === null) return answer;
    this.#isApplied = true;
    return replaced;
  }

  send(answer: Answer, closing: boolean): Promise<void> {
    const { exchange, record, fault: met } = this.#begun;
    const fault = met !== null && this.#wasApplied(met, answer) ? met : null;
    if (met !== null && fault === null) this.#around.onUnused(met);
    record.key_id = exchange.key_id ?? answer.key_id ?? exchange.claimed_key_id;
    record.status = answer.status;
    record.code = answer.code ?? null;
    record.fault = fault?.id ?? null;
    const headers = [...(answer.headers ?? [])];
    const wait = fault?.spec.retry_after;
    if (wait !== undefined && exchange.rate?.allowed !== false && !headers.includes('Retry-After'))
      headers.push('Retry-After', `${wait}`);
    if (record.code === 'method_not_allowed' && this.#error !== null && !headers.includes('Allow'))
      headers.push('Allow', allowOf(this.#error.route));
    if (fault?.id === 'prefer') headers.push('Preference-Applied', `code=${answer.status}`);
    const at = headers.indexOf('Retry-After');
    record.retry_after = at < 0 ? null : Number(headers[at + 1]);
    return sendTampered(exchange, { ...answer, headers }, closing, fault);
  }

  /** Runs what throws where the fault applies. */
  #applying(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#isApplied = true;
      throw error;
    }
  }

  /** A fault with a status needs to have got its turn; one without only needs something to be done to. */
  #wasApplied({ spec }: Fault, answer: Answer): boolean {
    if (this.#isApplied) return true;
    if (this.#error !== null || spec.empty_page === true) return false;
    if (spec.duplicate === true) return answer.status === 200;
    return true;
  }

  #notePage({ status, body }: Answer): void {
    if (status !== 200 || (typeof body === 'object' && 'handle' in body)) return;
    const page = JSON.parse(typeof body === 'string' ? body : Buffer.concat(body).toString('utf8'));
    const { record } = this.#begun;
    record.rows = page.data.length;
    record.cursor_given = page.next_cursor;
    record.has_more = page.has_more;
    record.as_of = page.as_of;
    this.#page = page;
  }

  /** @returns null where the answer is no page, or its request has no cursor to give back */
  #emptyPage(answer: Answer): Answer | null {
    const { record, endpoint, request, exchange, baseUrl } = this.#begun;
    const { query } = splitTarget(request.url ?? '');
    const cursor =
      endpoint === 'listChanges' ? this.#around.startCursor(query) : (record.parameters.cursor ?? null);
    if (this.#page === null || cursor === null) return null;
    const page = { ...this.#page, data: [], next_cursor: cursor, has_more: true };
    record.rows = 0;
    record.cursor_given = cursor;
    record.has_more = true;
    const headers = nextLink(baseUrl, exchange.path, query, cursor);
    return { ...answer, body: JSON.stringify(page), headers };
  }

  #degradedHealth(answer: Answer): Answer | null {
    if (this.#error?.code !== 'unavailable' || this.#begun.endpoint !== 'getHealth') return null;
    if (typeof answer.body !== 'string') return null;
    const { alerts, ...health } = JSON.parse(answer.body);
    const more = { ...alerts, open: alerts.open + 1, page_worthy: alerts.page_worthy + 1 };
    const body = { ...health, status: 'degraded', alerts: more };
    return { ...answer, status: 503, body: JSON.stringify(body) };
  }
}
