/**
 * The appliance's own address of a photo, signed, so that the link works for anyone who holds it and nobody can
 * make one for another photo (contract: `source.image_url`). The signature has no expiry.
 */
import { createHmac } from 'node:crypto';

const SIGNATURE_BYTES = 16;
const SIGNATURES_CACHED_MAX = 20_000;

/** One photo is found in many articles: its signature is made once. */
const signatures = new Map<number, string>();

/** @returns the path with its signature, from `/` on; the base address is put before it when it is read */
export function photoPath(key: Uint8Array, sourceInternalId: number): string {
  let signature = signatures.get(sourceInternalId);
  if (signature === undefined) {
    signature = sign(key, sourceInternalId).toString('base64url');
    if (signatures.size >= SIGNATURES_CACHED_MAX) signatures.clear();
    signatures.set(sourceInternalId, signature);
  }
  return `/photos/${sourceInternalId}?signature=${signature}`;
}

function sign(key: Uint8Array, sourceInternalId: number): Buffer {
  return createHmac('sha256', key).update(`photo ${sourceInternalId}`).digest().subarray(0, SIGNATURE_BYTES);
}
