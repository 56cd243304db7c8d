/**
 * Access tokens: `<prefix>_token_<key id>_<52 characters>`. These are, in base64url, the time of issue (6 bytes,
 * milliseconds), the scopes (1 byte), and an HMAC of all that with the hash of the key (32 bytes). Nothing is stored: a
 * token survives a restart. The key is read for every request, so a token ends with its key.
 */
import { TOKEN_LIFETIME_MS } from '../limits/api-limits.ts';
import { createSeal, deriveKey } from '../seal.ts';
import type { StoredKey } from './access-reader.ts';
import { SCOPES, type Scope } from './scopes.ts';

export type AccessTokens = ReturnType<typeof createAccessTokens>;

const TOKEN_PATTERN = /^([a-z][a-z0-9]{0,15}_token_([a-z2-7]{12})_)([A-Za-z0-9_-]{52})$/;
const ISSUED_BYTES = 6;
const CLAIMS_BYTES = ISSUED_BYTES + 1;
/** How far the clock may be set back after a token was issued: a larger step would prolong it. */
const SET_BACK_MAX_MS = 60_000;

/** Whether it begins like a token; if {@link TOKEN_PATTERN} does not match, the rest is damaged. */
export const isLikeToken = (text: string) => /^[a-z][a-z0-9]{0,15}_token_/.test(text);

type Issuer = Pick<StoredKey, 'id' | 'prefix' | 'hash'>;

export function createAccessTokens(secret: Buffer) {
  const { sign, isSigned } = createSeal(deriveKey(secret, 'access-token'));
  // Claims and hash have fixed lengths, so no two tokens sign the same bytes.
  const signed = (head: string, claims: Uint8Array, hash: Uint8Array) => [head, claims, hash];

  return {
    issue({ id, prefix, hash }: Issuer, scopes: readonly Scope[], nowMs: number): string {
      const head = `${prefix}_token_${id}_`;
      const claims = Buffer.alloc(CLAIMS_BYTES);
      let bits = 0;
      claims.writeUIntBE(nowMs, 0, ISSUED_BYTES);
      // One bit for each scope, by its index in SCOPES.
      for (const scope of scopes) bits |= 1 << SCOPES.indexOf(scope);
      claims[ISSUED_BYTES] = bits;
      return head + Buffer.concat([claims, sign(...signed(head, claims, hash))]).toString('base64url');
    },
    /** Its members are valid only if `proves` returns true. Null if it does not have the form of a token. */
    read(text: string) {
      const [, head, keyId, rest] = TOKEN_PATTERN.exec(text) ?? [];
      if (head === undefined || keyId === undefined || rest === undefined) return null;
      // 52 characters are exactly 39 bytes: each token has only one spelling.
      const bytes = Buffer.from(rest, 'base64url');
      const claims = bytes.subarray(0, CLAIMS_BYTES);
      const bits = claims[ISSUED_BYTES] ?? 0;
      return {
        keyId,
        issuedMs: claims.readUIntBE(0, ISSUED_BYTES),
        scopes: SCOPES.filter((_scope, index) => (bits & (1 << index)) !== 0),
        /** Whether it was issued here for the key with this hash; in constant time. */
        proves: (hash: Uint8Array) => isSigned(bytes.subarray(CLAIMS_BYTES), ...signed(head, claims, hash)),
      };
    },
  };
}

export const isTokenCurrent = ({ issuedMs }: { readonly issuedMs: number }, nowMs: number): boolean =>
  nowMs >= issuedMs - SET_BACK_MAX_MS && nowMs < issuedMs + TOKEN_LIFETIME_MS;
