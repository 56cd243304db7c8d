/**
 * The part of a lab in one request of a client: records it, and applies its fault. A fault that is an error is thrown at
 * the same step of the pipeline as the real one.
 */
import type { IncomingMessage } from 'node:http';
import { CLIENT_NOT_VALID } from '../../auth/client-credentials.ts';
import type { Credential } from '../../auth/credential-check.ts';
import { now } from '../../clock.ts';
import { invalidClient, oauthError, tooManyTokens } from '../../http/endpoints/token.ts';
import type { Exchange, Intervention } from '../../http/exchange.ts';
import { nextLink } from '../../http/next-link.ts';
import { byteLength, isEvents } from '../../http/reply.ts';
import { type Answer, type Route, splitTarget } from '../../http/routes.ts';
import { allowanceUsed, nextDayMs } from '../../limits/daily-rows.ts';
import { rateLimited } from '../../limits/request-rate.ts';
import { PROBLEMS, type ProblemCode } from '../../problem-titles.ts';
import { Refused } from '../../refused.ts';
import { delayOf, retryAfter, sendAsProxy, sendTampered } from './fault-answers.ts';
import { codeOf, type Fault, type Faults } from './faults.ts';
import type { Report, RequestRecord } from './report.ts';

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

/** Errors of the step that checks the credential. */
const AT_CREDENTIAL = ['unauthorized', 'forbidden', 'unavailable', 'method_not_allowed'];
const TOKEN_RETRY_SECONDS = 60;
const CAUSE = 'a fault of the lab';

/** Errors that also have the numbers of their cause. @param allowance rows a day of the account */
const ERRORS: Readonly<Record<string, (begun: Begun, allowance: number) => Error>> = {
  rate_limited: ({ exchange, fault }) => {
    const wait = fault?.spec.retry_after;
    if (exchange.rate === null) return tooManyTokens(wait ?? TOKEN_RETRY_SECONDS, 'from this address');
    const reset_seconds = wait ?? exchange.rate.reset_seconds;
    exchange.rate = { ...exchange.rate, allowed: false, remaining: 0, reset_seconds };
    return rateLimited(exchange.rate);
  },
  daily_allowance: (_, allowance) => {
    const nowMs = now();
    return allowanceUsed({ by: 'account', allowance, used: allowance, until_ms: nextDayMs(nowMs) }, nowMs);
  },
  internal: () => new Error(CAUSE),
};

/** As the pipeline has it from the real cause, so body, headers and log line come from the same code. */
function errorOf(code: string, begun: Begun, allowance: number): Error {
  const error = ERRORS[code]?.(begun, allowance);
  if (error !== undefined) return error;
  if (!isRefusal(code)) return new Error(CAUSE);
  return new Refused(code, PROBLEMS[code].example, { cause: new Error(CAUSE) });
}

function isRefusal(code: string): code is Exclude<ProblemCode, 'internal'> {
  return code !== 'internal' && Object.hasOwn(PROBLEMS, code);
}

const refusedClient = ({ headers }: IncomingMessage) =>
  invalidClient(CLIENT_NOT_VALID, headers.authorization);

/** The answer in OAuth's own form; null: the endpoint has a problem document for this error. */
function tokenError(code: string, request: IncomingMessage): Answer | null {
  if (code === 'unauthorized' || code === 'invalid_client') return refusedClient(request);
  return code === 'invalid_scope' || code === 'unsupported_grant_type' ? oauthError(code, CAUSE) : null;
}

/** What a request needs of its lab. */
interface Lab {
  readonly faults: Pick<Faults, 'giveBack'>;
  readonly requests: Pick<Report, 'finish'>;
  readonly dailyRows: number;
}

export class LabRequest implements Intervention {
  readonly isTaken: boolean;
  readonly #begun: Begun;
  readonly #lab: Lab;
  /** The error code of the fault; null if it has none. */
  readonly #code: string | null;
  /** The page that the endpoint answered with. */
  #page: { data: unknown[] } | null = null;
  #isApplied = false;

  constructor(begun: Begun, lab: Lab) {
    const { request, exchange, fault, record } = begun;
    const { response } = exchange;
    const { status, reset, cut_after } = fault?.spec ?? {};
    this.#begun = begun;
    this.#lab = lab;
    this.#code = fault === null ? null : codeOf(fault.spec);
    response.once('close', () => lab.requests.finish(record, response.writableFinished));
    const isProxy = status === 502 || status === 504;
    this.isTaken = isProxy || (reset === true && cut_after === undefined);
    if (fault === null || !this.isTaken) return;
    record.fault = fault.id;
    const act = () => (isProxy ? sendAsProxy(response, fault, record) : request.socket.resetAndDestroy());
    const delayMs = delayOf(fault);
    if (delayMs === 0) act();
    else setTimeout(act, delayMs).unref();
  }

  atCredential(): void {
    if (this.#code !== null && AT_CREDENTIAL.includes(this.#code)) this.#raise(null);
  }

  atEndpoint(credential: Credential | null): void {
    const isOfAnswer = this.#isOfHealth() || this.#tokenError() !== null;
    if (this.#code !== null && !isOfAnswer) this.#raise(credential);
  }

  answered(answer: Answer): Answer {
    const { fault, endpoint } = this.#begun;
    if (endpoint === 'listChanges' || endpoint === 'listDetections') this.#notePage(answer);
    let replaced = this.#tokenError();
    if (this.#isOfHealth()) replaced = degradedHealth(answer);
    else if (this.#code === null && fault?.spec.empty_page === true) replaced = this.#emptyPage(answer);
    this.#isApplied ||= replaced !== null;
    return replaced ?? answer;
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
    if (fault !== null && record.code === 'method_not_allowed') headers.push('Allow', allowOf(this.#begun));
    const at = headers.indexOf('Retry-After');
    record.retry_after = at < 0 ? null : Number(headers[at + 1]);
    if (fault !== null && record.retry_after !== null)
      headers[at + 1] = retryAfter(fault.spec, record.retry_after);
    return sendTampered(exchange, { ...answer, headers }, closing, fault);
  }

  #raise(credential: Credential | null): never {
    this.#isApplied = true;
    const allowance = credential?.account.daily_rows ?? this.#lab.dailyRows;
    throw errorOf(this.#code ?? '', this.#begun, allowance);
  }

  #tokenError(): Answer | null {
    const { endpoint, request } = this.#begun;
    return endpoint === 'createToken' && this.#code !== null ? tokenError(this.#code, request) : null;
  }

  /** Health reports this error in its body (GET /v1/health). */
  #isOfHealth(): boolean {
    return this.#begun.endpoint === 'getHealth' && this.#code === 'unavailable';
  }

  /** An error counts if its step was reached, any other fault if there is an answer that it can change. */
  #wasApplied({ spec }: Fault, answer: Answer): boolean {
    if (this.#isApplied) return true;
    if (this.#code !== null || spec.empty_page === true) return false;
    if (spec.page_rows !== undefined && this.#begun.record.has_more !== true) return false;
    const isLonger = sizeOf(answer.body) > Math.max(spec.cut_after ?? -1, spec.truncate ?? -1);
    return isLonger && (spec.duplicate !== true || answer.status === 200);
  }

  #notePage({ status, body }: Answer): void {
    if (status !== 200 || isEvents(body) || (typeof body === 'object' && 'handle' in body)) return;
    const page = JSON.parse(typeof body === 'string' ? body : Buffer.concat(body).toString('utf8'));
    const { next_cursor: cursor_given, has_more, as_of } = page;
    Object.assign(this.#begun.record, { rows: page.data.length, cursor_given, has_more, as_of });
    this.#page = page;
  }

  /** @returns null if the answer is no page, or if its request begins at no cursor */
  #emptyPage(answer: Answer): Answer | null {
    const { record, request, exchange, baseUrl } = this.#begun;
    const { cursor } = record.parameters;
    if (this.#page === null || cursor === undefined) return null;
    const page = { ...this.#page, data: [], next_cursor: cursor, has_more: true };
    Object.assign(record, { rows: 0, cursor_given: cursor, has_more: true });
    const { query } = splitTarget(request.url ?? '');
    const headers = nextLink(baseUrl, exchange.path, query, cursor);
    return { ...answer, body: JSON.stringify(page), headers };
  }
}

/** No fault changes events or a photo. */
function sizeOf(body: Answer['body']): number {
  return isEvents(body) || (typeof body === 'object' && 'handle' in body) ? -1 : byteLength(body);
}

function degradedHealth(answer: Answer): Answer | null {
  if (typeof answer.body !== 'string') return null;
  const { alerts, ...health } = JSON.parse(answer.body);
  const more = { ...alerts, open: alerts.open + 1, page_worthy: alerts.page_worthy + 1 };
  return { ...answer, status: 503, body: JSON.stringify({ ...health, status: 'degraded', alerts: more }) };
}

/** The value of `Allow`. */
function allowOf({ route }: Begun): string {
  return `${route?.method}${route?.head !== undefined ? ', HEAD' : ''}`;
}
