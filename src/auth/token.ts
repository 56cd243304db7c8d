/**
 * Access tokens: made and read (contract: Token; Authentication, 5). Pure but for the data folder's secret.
 *
 * `<prefix>_token_<key id>_<52 characters>`: behind the key's prefix and id stand, in base64url, when it was issued
 * (6 bytes, milliseconds), its scopes (1 byte) and an HMAC of all of it together with the key's hash (32 bytes).
 * Nothing is stored: a token outlives a restart, and a copy of the database brings none of them back. What its key
 * may do is asked of the store for every request, so a token ends with its key.
 */
import { TOKEN_LIFETIME_MS } from '../limits/contract-limits.ts';
import { createSeal, deriveKey } from '../seal.ts';
import { SCOPES, type Scope } from './scopes.ts';

/** What a token is made for. */
export interface TokenKey {
  readonly id: string;
  readonly prefix: string;
  /** SHA-256 of the whole key. */
  readonly hash: Uint8Array;
}

/** A token as it was presented: what it says holds only once {@link proves} has said so. */
export interface PresentedToken {
  readonly keyId: string;
  readonly issuedMs: number;
  readonly scopes: readonly Scope[];
  /** Whether it was issued here for the key that has this hash; in constant time. */
  proves(hash: Uint8Array): boolean;
}

export interface AccessTokens {
  /** @param nowMs epoch milliseconds */
  issue(key: TokenKey, scopes: readonly Scope[], nowMs: number): string;
  /** Reads a token; null when it has not the form of one. */
  read(text: string): PresentedToken | null;
}

const TOKEN_PATTERN = /^([a-z][a-z0-9]{0,15}_token_([a-z2-7]{12})_)([A-Za-z0-9_-]{52})$/;
/** Where a token begins; what follows it is damaged where {@link TOKEN_PATTERN} does not match. */
const TOKEN_BEGINNING = /^[a-z][a-z0-9]{0,15}_token_/;
const ISSUED_BYTES = 6;
const CLAIMS_BYTES = ISSUED_BYTES + 1;
/** How far the clock may have been set back since a token was issued: a token is not to last for as long as that. */
const SET_BACK_MAX_MS = 60_000;

/** Whether it is meant as a token, though it may not be one. */
export function isLikeToken(text: string): boolean {
  return TOKEN_BEGINNING.test(text);
}

/** @param secret of the data folder */
export function createAccessTokens(secret: Buffer): AccessTokens {
  const { sign, isSigned } = createSeal(deriveKey(secret, 'access-token'));
  // Claims and hash have fixed lengths, so no two tokens sign the same bytes.
  const signed = (head: string, claims: Uint8Array, hash: Uint8Array) => [head, claims, hash];

  return {
    issue({ id, prefix, hash }, scopes, nowMs) {
      const head = `${prefix}_token_${id}_`;
      const claims = Buffer.alloc(CLAIMS_BYTES);
      claims.writeUIntBE(nowMs, 0, ISSUED_BYTES);
      claims[ISSUED_BYTES] = scopeBits(scopes);
      return head + Buffer.concat([claims, sign(...signed(head, claims, hash))]).toString('base64url');
    },
    read(text) {
      const [, head, keyId, rest] = TOKEN_PATTERN.exec(text) ?? [];
      if (head === undefined || keyId === undefined || rest === undefined) return null;
      // 52 characters are 39 bytes with no bit to spare: there is one spelling only.
      const bytes = Buffer.from(rest, 'base64url');
      const claims = bytes.subarray(0, CLAIMS_BYTES);
      const bits = claims[ISSUED_BYTES] ?? 0;
      return {
        keyId,
        issuedMs: claims.readUIntBE(0, ISSUED_BYTES),
        scopes: SCOPES.filter((_scope, index) => (bits & (1 << index)) !== 0),
        proves: (hash) => isSigned(bytes.subarray(CLAIMS_BYTES), ...signed(head, claims, hash)),
      };
    },
  };
}

/** Whether a token is within its hour, by a clock that may have been set back a little. */
export function isTokenCurrent({ issuedMs }: Pick<PresentedToken, 'issuedMs'>, nowMs: number): boolean {
  return nowMs >= issuedMs - SET_BACK_MAX_MS && nowMs < issuedMs + TOKEN_LIFETIME_MS;
}

/** A bit a scope, by its place among all scopes. */
function scopeBits(scopes: readonly Scope[]): number {
  return SCOPES.reduce((bits, scope, index) => (scopes.includes(scope) ? bits | (1 << index) : bits), 0);
}
