/** The appliance's own address of a photo: signed, so that nobody can make one for another photo. */
import { BoundedMap } from '../bounded-map.ts';
import { getOrMake } from '../get-or-make.ts';
import { createSeal, decodeBase64url } from '../seal.ts';

const SIGNATURE_BYTES = 16;
const SIGNATURES_CACHED_MAX = 20_000;
/** The form of the third part of a detection id. */
const PHOTO_ID = /^(0|[1-9][0-9]{0,14})$/;

/** One photo is found in many articles: its signature is made once. */
const signatures = new BoundedMap<number, string>(SIGNATURES_CACHED_MAX);

/** @returns the path with its signature, from `/` on; the base address is put before it when it is read */
export function photoPath(key: Uint8Array, sourceInternalId: number): string {
  const sign = () => sealOf(key).sign(contentOf(sourceInternalId)).toString('base64url');
  const signature = getOrMake(signatures, sourceInternalId, sign);
  return `/photos/${sourceInternalId}?signature=${signature}`;
}

/** @param text the number of a photo in its URL; @returns null unless it is in its canonical spelling */
export const parsePhotoId = (text: string) => (PHOTO_ID.test(text) ? Number(text) : null);

/** In constant time, and in its one spelling. Not cached: what strangers try must not fill the cache. */
export function isPhotoSignature(key: Uint8Array, sourceInternalId: number, signature: string): boolean {
  const bytes = decodeBase64url(signature);
  return bytes !== null && sealOf(key).isSigned(bytes, contentOf(sourceInternalId));
}

const sealOf = (key: Uint8Array) => createSeal(key, SIGNATURE_BYTES);

const contentOf = (sourceInternalId: number) => `photo ${sourceInternalId}`;
