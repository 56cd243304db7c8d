/**
 * Sends answers that a fault changes: late, slowly, in part, or not at all. Each has the fault's id in a
 * header. Every answer of a lab has the date of its clock.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../../clock.ts';
import type { Exchange } from '../../http/exchange.ts';
import { sendAnswer, writeHead } from '../../http/reply.ts';
import type { Answer } from '../../http/routes.ts';
import type { FaultSpec } from '../../operations/lab-members.ts';
import { parseDuration, SECOND_MS } from '../../time.ts';
import type { Fault } from './faults.ts';
import type { RequestRecord } from './report.ts';

const TAMPERED = 'X-Wirewatch-Lab';
const EXPOSE = 'Access-Control-Expose-Headers';
/** How often a second a slow body is continued. */
const PIECES_A_SECOND = 10;
const REASONS: Readonly<Record<number, string>> = { 502: 'Bad Gateway', 504: 'Gateway Time-out' };

/** Sends an answer with the effect of its fault; never rejects. */
export async function sendTampered(
  exchange: Exchange,
  plain: Answer,
  closing: boolean,
  fault: Fault | null,
): Promise<void> {
  const headers = [...(plain.headers ?? []), 'Date', new Date(now()).toUTCString()];
  if (fault !== null) headers.push(TAMPERED, fault.id);
  // A page of another origin reads only what is exposed.
  if (fault !== null && exchange.cors.includes(EXPOSE)) headers.push(EXPOSE, TAMPERED);
  const answer = { ...plain, headers };
  const delayMs = delayOf(fault);
  // Without a reference: a delay must not keep the lab from ending.
  if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
  try {
    const { body } = answer;
    const isText = typeof body === 'string' || Array.isArray(body);
    if (fault === null || !touchesBody(fault) || !isText || exchange.response.destroyed)
      await sendAnswer(exchange, answer, closing);
    else {
      const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.concat(body);
      await sendBody(exchange, { ...answer, body: bytes }, closing, fault);
    }
  } catch {
    // Only the client could be told; its connection is cut.
    exchange.response.destroy();
  }
}

/** Milliseconds. */
export function delayOf(fault: Fault | null): number {
  return parseDuration(fault?.spec.delay ?? '0ms') ?? 0;
}

/** Answers like an nginx whose upstream fails (502) or is too slow (504). */
export function sendAsProxy(response: ServerResponse, { id, spec }: Fault, record: RequestRecord): void {
  const status = spec.status ?? 502;
  const title = `${status} ${REASONS[status]}`;
  const body = `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n`;
  record.status = status;
  record.retry_after = spec.retry_after ?? null;
  if (response.destroyed) return;
  response.writeHead(status, [
    ...['Server', 'nginx', 'Date', new Date(now()).toUTCString()],
    ...['Content-Type', 'text/html', 'Content-Length', `${body.length}`],
    ...(spec.retry_after === undefined ? [] : ['Retry-After', retryAfter(spec, spec.retry_after)]),
    ...[TAMPERED, id],
  ]);
  response.end(body);
}

/** The value of Retry-After: seconds, or the date by the lab's clock (RFC 9110, section 10.2.3). */
export function retryAfter({ retry_after_date }: FaultSpec, seconds: number): string {
  return retry_after_date === true ? new Date(now() + seconds * SECOND_MS).toUTCString() : `${seconds}`;
}

function touchesBody({ spec }: Fault): boolean {
  return [spec.slow, spec.cut_after, spec.truncate].some((given) => given !== undefined);
}

async function sendBody(
  exchange: Exchange,
  answer: Omit<Answer, 'body'> & { readonly body: Buffer },
  closing: boolean,
  { spec }: Fault,
): Promise<void> {
  const { response } = exchange;
  const { body: whole } = answer;
  const body = whole.subarray(0, spec.truncate ?? whole.length);
  writeHead(exchange, { ...answer, body: [body] }, closing);
  const cut = spec.cut_after === undefined ? null : Math.min(spec.cut_after, body.length);
  const piece = Math.max(1, Math.ceil((spec.slow ?? Number.MAX_SAFE_INTEGER) / PIECES_A_SECOND));
  const end = cut ?? body.length;
  response.flushHeaders();
  for (let at = 0; at < end && !response.destroyed; at += piece) {
    await written(response, body.subarray(at, Math.min(at + piece, end)));
    if (spec.slow !== undefined) await sleep(1000 / PIECES_A_SECOND);
  }
  if (cut === null) response.end();
  // In a later turn: what was written must reach the client first.
  else setImmediate(() => (spec.reset ? response.req.socket.resetAndDestroy() : response.destroy()));
}

/** Resolves when the system has the bytes, or the client is gone. */
function written(response: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      response.off('close', finish);
      resolve();
    };
    response.once('close', finish);
    response.write(bytes, finish);
  });
}
