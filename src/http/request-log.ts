/** What is noted of each request: a line in the log, its counts in the metrics, and the use of its key. */
import { logInfo } from '../logger.ts';
import { cleanText, cutAtSecret } from '../printable.ts';
import { unlessError } from '../refused.ts';
import type { Answer, Exchange } from './exchange.ts';
import type { Problem } from './problem.ts';
import { TOKEN_PATH } from './reply.ts';
import type { Limit } from './request-metrics.ts';
import type { Service } from './service.ts';

/** What is noted of an answer, or of a further page in it. */
export type Noted = Omit<Answer, 'body'>;

const LOGGED_PATH_CHARACTERS_MAX = 256;

export function noteAnswer(service: Service, exchange: Exchange, answer: Noted): void {
  const { request_id, address, request, path, endpoint, claimed_key_id, key_id: keyId } = exchange;
  if (keyId !== null) service.keyUses.note(keyId, service.now(), answer.position);
  const durationMs = performance.now() - exchange.startedMs;
  const { status, rows, code, position, waited_ms } = answer;
  const limit = limitOf(code, exchange);
  if (limit !== null) service.metrics?.refused(limit);
  const write = () => {
    const line = {
      request_id,
      address,
      key_id: keyId ?? undefined,
      method: request.method,
      // Truncated last: a secret cut short could pass.
      path: cleanText(cutAtSecret(path)).slice(0, LOGGED_PATH_CHARACTERS_MAX),
      status,
      rows,
      code,
      claimed_key_id: keyId === null ? (claimed_key_id ?? undefined) : undefined,
      limit: limit ?? undefined,
      duration_ms: Math.round(durationMs * 1000) / 1000,
      waited_ms: waited_ms === undefined ? undefined : Math.round(waited_ms * 1000) / 1000,
    };
    logInfo(service.log, line, 'request');
  };
  // What a verified key may ask is limited, except for what exceeds that limit.
  if (keyId !== null && limit !== 'requests') write();
  else service.strangers.note(address, limit ?? code ?? `${status}`, write);
  const seconds = (durationMs - (waited_ms ?? 0)) / 1000;
  const counts = { status, seconds, rows: rows ?? 0, key_id: keyId, position };
  service.metrics?.answered({ endpoint: endpoint?.path ?? 'none', ...counts });
}

/** Called when the answer is sent: its time does not tell whether the key exists. */
export function countRefusal({ metrics, access }: Service, exchange: Exchange, { code }: Problem): void {
  const keyId = exchange.key_id ?? exchange.claimed_key_id;
  if (metrics === null || keyId === null) return;
  // If keys cannot be read, there is an alert.
  const isKnown = exchange.key_id !== null || unlessError(false, () => access.hasKey(keyId));
  if (isKnown) metrics.keyRefused(keyId, code);
}

/** The limit that an answer reports. Before a key is verified, requests count by address. */
function limitOf(code: Answer['code'], { rate, path }: Exchange): Limit | null {
  if (code === 'daily_allowance') return 'daily_rows';
  if (code !== 'rate_limited') return null;
  if (rate !== null) return 'requests';
  return path === TOKEN_PATH ? 'token_requests' : 'unseen_key_ids';
}
