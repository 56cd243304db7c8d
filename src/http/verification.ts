/** Verifies the credential of a request: before its endpoint, and again after each wait for a change. */
import { addressNetwork } from '../addresses.ts';
import { authenticate, claimedKeyId, readCredential, requireScope } from '../auth/credential-check.ts';
import type { Scope } from '../auth/scopes.ts';
import { rateLimited, tooMany } from '../limits/request-rate.ts';
import { Refused } from '../refused.ts';
import type { Exchange } from './exchange.ts';
import { type Noted, noteAnswer } from './request-log.ts';
import type { Service } from './service.ts';

const TOO_MANY_UNSEEN = 'Too many requests from this address with key ids that it has not used recently';

/** @throws Refused `rate_limited`, also before anything is verified; otherwise as {@link authenticate} */
export function verify(service: Service, exchange: Exchange) {
  const { unseen, seenKeys } = service;
  const { request, address, nowMs, intervention } = exchange;
  const keyId = claimedKeyId(request.headers.authorization);
  exchange.claimed_key_id = keyId;
  intervention?.atCredential();
  const isUnseen = keyId !== null && !seenKeys.isSeen(keyId, address, nowMs);
  const secondsToWait = isUnseen ? unseen.secondsToWait(addressNetwork(address), nowMs) : null;
  if (secondsToWait !== null) throw tooMany(TOO_MANY_UNSEEN, secondsToWait);
  try {
    const credential = read(service, exchange, nowMs);
    exchange.key_id = credential.key_id;
    seenKeys.markSeen(credential.key_id, address, nowMs);
    exchange.rate = service.rate.take(credential.key_id, nowMs);
    if (!exchange.rate.allowed) throw rateLimited(exchange.rate);
    return credential;
  } catch (error) {
    // The key was verified, only its account or this address is refused: this is not guessing.
    const isVerified = error instanceof Refused && error.code === 'forbidden';
    if (isVerified && keyId !== null) seenKeys.markSeen(keyId, address, nowMs);
    throw error;
  }
}

/** @throws Refused as for a new request, but for the request rate */
export function verifyAgain(service: Service, exchange: Exchange, scope: Scope) {
  const startedMs = performance.now();
  const atMs = service.now();
  exchange.rate = null;
  const credential = read(service, exchange, atMs);
  exchange.rate = service.rate.current(credential.key_id, atMs);
  requireScope(credential, scope);
  service.allowance.require(credential, atMs);
  exchange.reader = { credential, atMs, startedMs };
  return credential;
}

/**
 * Counts a further page of the same answer, as a request of its own, since the credential was verified again.
 * @throws Refused `rate_limited`
 */
export function countPage(service: Service, exchange: Exchange, page: Noted): void {
  const { reader } = exchange;
  if (reader === null) throw new Error('a page without a credential');
  const rate = service.rate.take(reader.credential.key_id, service.now());
  if (!rate.allowed) throw rateLimited(rate);
  service.allowance.count(reader.credential, page.rows ?? 0, reader.atMs);
  noteAnswer(service, { ...exchange, startedMs: reader.startedMs }, page);
}

function read(service: Service, { request, address }: Exchange, nowMs: number) {
  const presented = readCredential(request.headers.authorization, service.tokens);
  return authenticate(service.access, presented, address, nowMs);
}
