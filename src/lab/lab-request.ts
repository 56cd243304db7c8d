/** The part of a lab in one request of a client: records it, and applies its fault at the step of the real error. */
import type { IncomingMessage } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { Intervention } from '../http/interventions.ts';
import { nextLink } from '../http/next-link.ts';
import type { Exchange } from '../http/reply.ts';
import { type Answer, type Route, splitTarget } from '../http/routes.ts';
import type { FaultSpec } from './actions.ts';
import { cutConnection, delayOf, sendAsProxy, sendTampered } from './fault-answers.ts';
import { allowOf, type Failing, throwAtCredential, throwAtEndpoint, tokenAnswer } from './fault-errors.ts';
import { codeOf, type Fault } from './faults.ts';
import type { Lab } from './lab.ts';
import type { RequestRecord } from './report.ts';

export interface Begun {
  readonly request: IncomingMessage;
  readonly exchange: Exchange;
  /** Null for a path or method that does not exist: such a request has no fault. */
  readonly route: Route | null;
  /** Null if `route` is. */
  readonly endpoint: string | null;
  readonly fault: Fault | null;
  readonly record: RequestRecord;
  readonly baseUrl: string;
}

export class LabRequest implements Intervention {
  readonly isTaken: boolean;
  readonly #begun: Begun;
  readonly #lab: Lab;
  /** Set if the fault is an error with a code. */
  readonly #failing: Failing | null;
  /** The page that the endpoint answered with. */
  #page: { data: unknown[] } | null = null;
  #isApplied = false;

  constructor(begun: Begun, lab: Lab) {
    const { request, exchange, route, fault, record } = begun;
    const { response } = exchange;
    const spec: FaultSpec = fault?.spec ?? {};
    const code = codeOf(spec);
    this.#begun = begun;
    this.#lab = lab;
    this.#failing =
      route === null || code === null
        ? null
        : { ...begun, code, route, retryAfter: spec.retry_after, dailyRows: lab.dailyRows };
    response.once('close', () => lab.requests.finish(record, response.writableFinished));
    const isProxy = spec.status === 502 || spec.status === 504;
    this.isTaken = isProxy || spec.close === true || (spec.reset === true && spec.cut_after === undefined);
    if (fault === null || !this.isTaken) return;
    record.fault = fault.id;
    const act = () =>
      isProxy ? sendAsProxy(response, fault, record) : cutConnection(request.socket, spec.reset);
    const delayMs = delayOf(fault);
    if (delayMs === 0) act();
    else setTimeout(act, delayMs).unref();
  }

  atCredential(): void {
    this.#applying((failing) => throwAtCredential(failing));
  }

  atEndpoint(credential: Credential | null): void {
    this.#applying((failing) => throwAtEndpoint(failing, credential));
  }

  answered(answer: Answer): Answer {
    const { fault, endpoint } = this.#begun;
    if (endpoint === 'listChanges' || endpoint === 'listDetections') this.#notePage(answer);
    let replaced: Answer | null = null;
    if (this.#failing !== null) replaced = tokenAnswer(this.#failing) ?? this.#degradedHealth(answer);
    else if (fault?.spec.empty_page === true) replaced = this.#emptyPage(answer);
    if (replaced === null) return answer;
    this.#isApplied = true;
    return replaced;
  }

  send(answer: Answer, closing: boolean): Promise<void> {
    const { exchange, record, fault: met } = this.#begun;
    const fault = met !== null && this.#wasApplied(met, answer) ? met : null;
    if (met !== null && fault === null) this.#lab.faults.giveBack(met);
    record.key_id = exchange.key_id ?? answer.key_id ?? exchange.claimed_key_id;
    record.status = answer.status;
    record.code = answer.code ?? null;
    record.fault = fault?.id ?? null;
    const headers = [...(answer.headers ?? [])];
    const wait = fault?.spec.retry_after;
    if (wait !== undefined && exchange.rate?.allowed !== false && !headers.includes('Retry-After'))
      headers.push('Retry-After', `${wait}`);
    if (record.code === 'method_not_allowed' && this.#failing !== null && !headers.includes('Allow'))
      headers.push('Allow', allowOf(this.#failing.route));
    if (fault?.id === 'prefer') headers.push('Preference-Applied', `code=${answer.status}`);
    const at = headers.indexOf('Retry-After');
    record.retry_after = at < 0 ? null : Number(headers[at + 1]);
    return sendTampered(exchange, { ...answer, headers }, closing, fault);
  }

  #applying(raise: (failing: Failing) => void): void {
    try {
      if (this.#failing !== null) raise(this.#failing);
    } catch (error) {
      this.#isApplied = true;
      throw error;
    }
  }

  /** An error counts if its step was reached, any other fault if there is an answer that it can change. */
  #wasApplied({ spec }: Fault, answer: Answer): boolean {
    if (this.#isApplied) return true;
    if (this.#failing !== null || spec.empty_page === true) return false;
    return spec.duplicate !== true || answer.status === 200;
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

  /** @returns null if the answer is no page, or if there is no cursor at which its request begins */
  #emptyPage(answer: Answer): Answer | null {
    const { record, endpoint, request, exchange, baseUrl } = this.#begun;
    const { query } = splitTarget(request.url ?? '');
    const cursor =
      endpoint === 'listChanges' ? this.#lab.startCursor(query) : (record.parameters.cursor ?? null);
    if (this.#page === null || cursor === null) return null;
    const page = { ...this.#page, data: [], next_cursor: cursor, has_more: true };
    record.rows = 0;
    record.cursor_given = cursor;
    record.has_more = true;
    const headers = nextLink(baseUrl, exchange.path, query, cursor);
    return { ...answer, body: JSON.stringify(page), headers };
  }

  #degradedHealth(answer: Answer): Answer | null {
    if (this.#failing?.code !== 'unavailable' || this.#begun.endpoint !== 'getHealth') return null;
    if (typeof answer.body !== 'string') return null;
    const { alerts, ...health } = JSON.parse(answer.body);
    const more = { ...alerts, open: alerts.open + 1, page_worthy: alerts.page_worthy + 1 };
    const body = { ...health, status: 'degraded', alerts: more };
    return { ...answer, status: 503, body: JSON.stringify(body) };
  }
}
