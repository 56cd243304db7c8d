/**
 * The part of a lab in one request of a client: records it, and applies its fault. A fault that is an error is thrown at
 * the same step of the pipeline as the real one. Others change how the answer is sent: late, slowly, in part, or not at
 * all. Every answer has the date of the lab's clock, and one that a fault has changed the fault's id in a header.
 */
import { STATUS_CODES } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { CLIENT_NOT_VALID } from '../../auth/client-credentials.ts';
import type { Credential } from '../../auth/credential-check.ts';
import { now } from '../../clock.ts';
import { invalidClient, tooManyTokens } from '../../http/endpoints/token.ts';
import type { Answer, Exchange, Intervention } from '../../http/exchange.ts';
import { nextLink } from '../../http/next-link.ts';
import { isRefusal, oauthError } from '../../http/problem.ts';
import { sendAnswer, writeHead } from '../../http/reply.ts';
import { allowanceUsed, nextDayMs } from '../../limits/daily-rows.ts';
import { rateLimited } from '../../limits/request-rate.ts';
import type { FaultSpec } from '../../operations/lab.ts';
import { PROBLEMS } from '../../problem-titles.ts';
import { Refused } from '../../refused.ts';
import { parseDuration, SECOND_MS } from '../../time.ts';
import { codeOf, type Fault } from './faults.ts';
import { finish, type RequestRecord } from './report.ts';

interface Begun {
  readonly exchange: Exchange;
  /** Null also for a path or method that does not exist. */
  readonly fault: Fault | null;
  readonly record: RequestRecord;
  readonly baseUrl: string;
  /** Rows a day of an account without an allowance of its own. */
  readonly dailyRows: number;
}

/** Errors of the step that checks the credential. */
const AT_CREDENTIAL = ['unauthorized', 'forbidden', 'unavailable', 'method_not_allowed'];
const TOKEN_RETRY_SECONDS = 60;
const CAUSE = 'a fault of the lab';
const TAMPERED = 'X-Wirewatch-Lab';
const EXPOSE = 'Access-Control-Expose-Headers';
/** How often a second a slow body is continued. */
const PIECES_A_SECOND = 10;

export function interveneIn({ exchange, fault, record, baseUrl, dailyRows }: Begun): Intervention {
  const { request, response } = exchange;
  const spec: FaultSpec = fault?.spec ?? {};
  const { status, retry_after, slow, cut_after, truncate, reset } = spec;
  /** The error code of the fault; null if it has none. */
  const code = codeOf(spec);
  const isOfProxy = status === 502 || status === 504;
  /** Health reports this error in its body (GET /v1/health). */
  const isOfHealth = record.endpoint === 'getHealth' && code === 'unavailable';
  let isApplied = false;

  /** Answers like an nginx whose upstream fails (502) or is too slow (504), or resets the connection. */
  async function take(): Promise<void> {
    record.fault = fault?.id ?? null;
    await delay();
    if (!isOfProxy) return void request.socket.resetAndDestroy();
    record.status = status;
    record.retry_after = retry_after ?? null;
    const title = `${status} ${STATUS_CODES[status]}`;
    const body = `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n`;
    if (response.destroyed) return;
    response.writeHead(status, [
      ...['Server', 'nginx', 'Date', new Date(now()).toUTCString()],
      ...['Content-Type', 'text/html', 'Content-Length', `${body.length}`],
      ...(retry_after === undefined ? [] : ['Retry-After', retryAfter(retry_after)]),
      ...[TAMPERED, fault?.id ?? ''],
    ]);
    response.end(body);
  }

  /** Without a reference: a delay must not keep the lab from ending. */
  async function delay(): Promise<void> {
    const delayMs = parseDuration(spec.delay ?? '0ms') ?? 0;
    if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
  }

  function addHeaders(headers: string[], answer: Answer): void {
    const { endpoint, rate, cors } = exchange;
    if (retry_after !== undefined && rate?.allowed !== false && !headers.includes('Retry-After'))
      headers.push('Retry-After', `${retry_after}`);
    if (answer.code === 'method_not_allowed')
      headers.push('Allow', `${endpoint?.method}${endpoint?.head === undefined ? '' : ', HEAD'}`);
    headers.push(TAMPERED, fault?.id ?? '');
    // A page of another origin reads only what is exposed.
    if (cors.includes(EXPOSE)) headers.push(EXPOSE, TAMPERED);
  }

  /** The value of Retry-After: seconds, or the date by the lab's clock (RFC 9110, section 10.2.3). */
  const retryAfter = (seconds: number) =>
    spec.retry_after_date === true ? new Date(now() + seconds * SECOND_MS).toUTCString() : `${seconds}`;

  async function sendBody(answer: Answer, whole: Buffer, closing: boolean): Promise<void> {
    const body = whole.subarray(0, truncate ?? whole.length);
    writeHead(exchange, { ...answer, body: [body] }, closing);
    const end = Math.min(cut_after ?? body.length, body.length);
    const piece = slow === undefined ? end : Math.ceil(slow / PIECES_A_SECOND);
    response.flushHeaders();
    for (let at = 0; at < end && !response.destroyed; at += piece) {
      // Until the system has the bytes.
      await new Promise((resolve) => response.write(body.subarray(at, Math.min(at + piece, end)), resolve));
      if (slow !== undefined) await sleep(1000 / PIECES_A_SECOND);
    }
    if (cut_after === undefined) response.end();
    // In a later turn: what was written must reach the client first.
    else setImmediate(() => (reset === true ? request.socket.resetAndDestroy() : response.destroy()));
  }

  /** As the pipeline has it from the real cause, so body, headers and log line come from the same code. */
  function errorOf(known: string, credential: Credential | null): Error {
    isApplied = true;
    if (known === 'rate_limited') {
      if (exchange.rate === null)
        return tooManyTokens(retry_after ?? TOKEN_RETRY_SECONDS, 'from this address');
      const reset_seconds = retry_after ?? exchange.rate.reset_seconds;
      exchange.rate = { ...exchange.rate, allowed: false, remaining: 0, reset_seconds };
      return rateLimited(exchange.rate);
    }
    if (known === 'daily_allowance') {
      const nowMs = now();
      const allowance = credential?.account.daily_rows ?? dailyRows;
      const used = { by: 'account', allowance, used: allowance, until_ms: nextDayMs(nowMs) } as const;
      return allowanceUsed(used, nowMs);
    }
    const cause = new Error(CAUSE);
    return isRefusal(known) ? new Refused(known, PROBLEMS[known].example, { cause }) : cause;
  }

  /** The answer in OAuth's own form; null: the endpoint has a problem document for this error, or there is none. */
  function tokenError(): Answer | null {
    if (record.endpoint !== 'createToken') return null;
    if (code === 'unauthorized' || code === 'invalid_client')
      return invalidClient(CLIENT_NOT_VALID, request.headers.authorization);
    return code === 'invalid_scope' || code === 'unsupported_grant_type' ? oauthError(code, CAUSE) : null;
  }

  /** An error counts if its step was reached, any other fault if there is an answer that it can change. */
  function wasApplied(answer: Answer): boolean {
    if (isApplied) return true;
    if (code !== null || spec.empty_page === true) return false;
    if (spec.page_rows !== undefined && record.has_more !== true) return false;
    const isLonger = (bytesOf(answer.body)?.length ?? -1) > Math.max(cut_after ?? -1, truncate ?? -1);
    return isLonger && (spec.duplicate !== true || answer.status === 200);
  }

  /** @returns the page that the endpoint answers with, noted in the report; null: it is none */
  function pageIn(answer: Answer): object | null {
    const isList = record.endpoint === 'listChanges' || record.endpoint === 'listDetections';
    const bytes = isList && answer.status === 200 ? bytesOf(answer.body) : null;
    if (bytes === null) return null;
    const page = JSON.parse(bytes.toString());
    const { next_cursor: cursor_given, has_more, as_of } = page;
    Object.assign(record, { rows: page.data.length, cursor_given, has_more, as_of });
    return page;
  }

  /** @returns null if the request begins at no cursor */
  function emptyPage(answer: Answer, full: object): Answer | null {
    const { cursor } = record.parameters;
    if (cursor === undefined) return null;
    const page = { ...full, data: [], next_cursor: cursor, has_more: true };
    Object.assign(record, { rows: 0, cursor_given: cursor, has_more: true });
    const headers = nextLink(baseUrl, exchange.path, exchange.query, cursor);
    return { ...answer, body: JSON.stringify(page), headers };
  }

  response.once('close', () => {
    const isWhole = record.fault === null || truncate === undefined;
    finish(record, response.writableFinished && isWhole);
  });
  const isTaken = isOfProxy || (reset === true && cut_after === undefined);
  if (isTaken) void take();
  return {
    isTaken,
    atCredential() {
      if (code !== null && AT_CREDENTIAL.includes(code)) throw errorOf(code, null);
    },
    atEndpoint(credential) {
      if (code !== null && !isOfHealth && tokenError() === null) throw errorOf(code, credential);
    },
    answered(answer) {
      const page = pageIn(answer);
      const isEmptied = code === null && spec.empty_page === true;
      let replaced = tokenError();
      if (isOfHealth) replaced = degradedHealth(answer);
      else if (isEmptied && page !== null) replaced = emptyPage(answer, page);
      isApplied ||= replaced !== null;
      return replaced ?? answer;
    },
    async send(plain, closing) {
      const isMet = fault !== null && wasApplied(plain);
      if (isMet) record.fault = fault.id;
      else if (fault !== null) fault.fired -= 1;
      const headers = [...(plain.headers ?? []), 'Date', new Date(now()).toUTCString()];
      if (isMet) addHeaders(headers, plain);
      const at = headers.indexOf('Retry-After');
      record.key_id = exchange.key_id ?? exchange.claimed_key_id;
      record.status = plain.status;
      record.code = plain.code ?? null;
      record.retry_after = at < 0 ? null : Number(headers[at + 1]);
      if (isMet && record.retry_after !== null) headers[at + 1] = retryAfter(record.retry_after);
      if (isMet) await delay();
      const isChanged = isMet && (slow ?? cut_after ?? truncate) !== undefined;
      const bytes = isChanged && !response.destroyed ? bytesOf(plain.body) : null;
      const answer = { ...plain, headers };
      try {
        if (bytes === null) await sendAnswer(exchange, answer, closing);
        else await sendBody(answer, bytes, closing);
      } catch {
        // Only the client could be told; its connection is cut.
        response.destroy();
      }
    },
  };
}

/** Null for events and a photo: no fault changes them. */
function bytesOf(body: Answer['body']): Buffer | null {
  if (typeof body === 'string') return Buffer.from(body);
  return Array.isArray(body) ? Buffer.concat(body) : null;
}

function degradedHealth(answer: Answer): Answer | null {
  if (typeof answer.body !== 'string') return null;
  const { alerts, ...health } = JSON.parse(answer.body);
  const more = { ...alerts, open: alerts.open + 1, page_worthy: alerts.page_worthy + 1 };
  return { ...answer, status: 503, body: JSON.stringify({ ...health, status: 'degraded', alerts: more }) };
}
