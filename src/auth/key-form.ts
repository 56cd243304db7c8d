/**
 * API keys as text: `<prefix>_live_<id>_<secret>`. The id has 12 characters of `a-z2-7`, the secret 52: 45 random ones (225
 * bits), and a checksum of everything before it, which detects a badly copied key without the database.
 */
import { hash, randomBytes } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const ID_LENGTH = 12;
const RANDOM_LENGTH = 45;
const CHECKSUM_LENGTH = 7;

/** The pattern of the first part of a key, and what it means. */
export const KEY_PREFIX = '[a-z][a-z0-9]{0,15}';
export const KEY_PREFIX_FORM = 'a lower-case letter, then up to 15 lower-case letters or digits';

const KEY_PATTERN = new RegExp(`^(${KEY_PREFIX})_live_([a-z2-7]{12})_([a-z2-7]{52})$`);

/** `id` is public: shown in lists, logs and `key.id`. `secret` proves the key; it is never stored or logged. */
export type ParsedKey = Readonly<Record<'prefix' | 'id' | 'secret', string>>;

/** @param prefix the setting `[keys] prefix`; @param bytes random, except in a lab; @returns the key and what is stored */
export function createKey(prefix: string, bytes: (length: number) => Uint8Array = randomBytes) {
  const id = base32(bytes(ID_LENGTH));
  const body = `${prefix}_live_${id}_${base32(bytes(RANDOM_LENGTH))}`;
  const key = body + checksum(body);
  return { id, prefix, hash: hashKey(key), key };
}

/** Null if the text does not have the form of a key, or its checksum is wrong. Any prefix is accepted. */
export function parseKey(text: string): ParsedKey | null {
  const [, prefix, id, secret] = KEY_PATTERN.exec(text) ?? [];
  if (prefix === undefined || id === undefined || secret === undefined) return null;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return checksum(body) === text.slice(-CHECKSUM_LENGTH) ? { prefix, id, secret } : null;
}

/** Whether it has the form of a key. If {@link parseKey} still returns null, the checksum is wrong: a typing error. */
export const hasKeyForm = (text: string) => KEY_PATTERN.test(text);

export const formatKey = ({ prefix, id, secret }: ParsedKey) => `${prefix}_live_${id}_${secret}`;

/** The stored form: SHA-256 of the complete key. 225 random bits need no slow hash. */
export const hashKey = (key: string) => hash('sha256', key, 'buffer');

export const isKeyId = (text: string) => /^[a-z2-7]{12}$/.test(text);

/** Whether it has the form of a secret. The checksum cannot be verified, because it covers the prefix. */
export const isKeySecret = (text: string) => /^[a-z2-7]{52}$/.test(text);

const checksum = (body: string) => base32(hashKey(body).subarray(0, CHECKSUM_LENGTH));

/** One character from the low five bits of each byte. */
function base32(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += ALPHABET[byte & 31];
  return text;
}
