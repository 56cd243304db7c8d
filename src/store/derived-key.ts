/** Keys for single purposes, derived from the secret of the data folder (RFC 5869): none reveals another. */
import { hkdfSync } from 'node:crypto';

const KEY_BYTES = 32;

/** @param label the purpose, such as `access-token`; changing it invalidates everything signed with the key */
export function deriveKey(secret: Buffer, label: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `wirewatch ${label}`, KEY_BYTES));
}
