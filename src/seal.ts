/**
 * What is given out and comes back unaltered: cursors, access tokens, addresses of photos.
 *
 * Each purpose has a key of its own, derived from the data folder's secret (RFC 5869), so that a text for one is
 * nothing to another. None of the formats may change: clients hold them for years.
 */
import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto';

const KEY_BYTES = 32;

/** @param label the purpose, such as `access-token`; changing it invalidates everything made with the key */
export const deriveKey = (secret: Buffer, label: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `wirewatch ${label}`, KEY_BYTES));

/** @param key of {@link deriveKey}; @param signatureBytes 16 to 32 */
export function createSeal(key: Uint8Array, signatureBytes = 32) {
  // With a key of plain bytes, Node prepares it for every signature, which takes five times as long.
  const secretKey = createSecretKey(key);
  /** HMAC-SHA-256 of the parts put together, cut to the length of the seal. */
  const sign = (...parts: (string | Uint8Array)[]) => {
    const hmac = createHmac('sha256', secretKey);
    for (const part of parts) hmac.update(part);
    return hmac.digest().subarray(0, signatureBytes);
  };
  /** Whether it is the signature of the parts, in constant time. */
  const isSigned = (signature: Uint8Array, ...parts: Parameters<typeof sign>) =>
    signature.length === signatureBytes && timingSafeEqual(signature, sign(...parts));
  return {
    sign,
    isSigned,
    /** The content followed by its signature, as base64url. */
    seal: (content: Uint8Array) => Buffer.concat([content, sign(content)]).toString('base64url'),
    /** @returns the content; null for a text that `seal` never gave */
    open(text: string): Buffer | null {
      const bytes = decodeBase64url(text);
      if (bytes === null || bytes.length < signatureBytes) return null;
      const content = bytes.subarray(0, -signatureBytes);
      return isSigned(bytes.subarray(-signatureBytes), content) ? content : null;
    },
  };
}

/**
 * @returns null but for the one spelling of some bytes: the last character can have bits to spare, and Node's decoder
 *   ignores what it does not know
 */
export function decodeBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}
