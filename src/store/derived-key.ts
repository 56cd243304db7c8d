/** Keys for single purposes, derived from the data folder's secret (RFC 5869), so that none tells of another. */
import { hkdfSync } from 'node:crypto';

const KEY_BYTES = 32;

/** @param label the purpose, such as `access-token`; changing it makes void all that was made with the key */
export function deriveKey(secret: Buffer, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `wirewatch ${label}`, KEY_BYTES));
}
