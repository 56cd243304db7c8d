/** A request's path as it may stand in the log: without keys and tokens that somebody put into it, and not too long. Pure. */

const CHARACTERS_MAX = 256;
/** No part of an ordinary path is as long; what is secret of a key or token is longer. */
const SECRET_LENGTH_MIN = 40;
/** A character of a key or token, percent-encoded, and be it several times over. */
const ENCODED = '%(?:25)*(2d|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f)';
const ENCODED_CHARACTER = new RegExp(ENCODED, 'gi');
/** A run of such characters, or an escape of another one, which ends it; what is no escape stands for itself. */
const RUN_OR_ESCAPE = new RegExp(`(?:[\\w-]|${ENCODED})+|%[0-9a-f]{2}`, 'gi');
/** Even a key that was cut off says nothing of its secret. */
const KEY_OR_TOKEN = /_(?:live|token)_/i;
/** What is public of a key or token: with it the operator knows which one to revoke. */
const PUBLIC_PART = /^[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_/i;

/** Of a path in which it finds nothing, every run stands for itself: nearly all are such. */
const SUSPECT = new RegExp(`%|_(?:live|token)_|[\\w-]{${SECRET_LENGTH_MIN}}`, 'i');

/** Ends where a key, a token or another secret begins: one that was typed wrongly may go on behind any character. */
export function loggedPath(path: string): string {
  if (path.length <= CHARACTERS_MAX && !SUSPECT.test(path)) return path;
  for (const { 0: run, index } of path.matchAll(RUN_OR_ESCAPE)) {
    const plain = run.replace(ENCODED_CHARACTER, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (plain.length < SECRET_LENGTH_MIN && !KEY_OR_TOKEN.test(plain)) continue;
    // Cut afterwards: cutting could make a secret short enough to pass.
    return `${path.slice(0, index)}${PUBLIC_PART.exec(plain)?.[0] ?? ''}[redacted]`.slice(0, CHARACTERS_MAX);
  }
  return path.slice(0, CHARACTERS_MAX);
}
