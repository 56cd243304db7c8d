/** A request's path for the log: without keys and tokens that a client put into it, and cut. Pure. */

const CHARACTERS_MAX = 256;
/** No part of an ordinary path is as long; the secret of a key or token is longer. */
const SECRET_LENGTH_MIN = 40;
/** A character of a key or token, percent-encoded once or several times. */
const ENCODED = '%(?:25)*(2d|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f)';
const ENCODED_CHARACTER = new RegExp(ENCODED, 'gi');
/** A run of such characters; or the escape of another one, which ends a run. */
const RUN_OR_ESCAPE = new RegExp(`(?:[\\w-]|${ENCODED})+|%[0-9a-f]{2}`, 'gi');
/** Also redacts a key that was cut off. */
const KEY_OR_TOKEN = /_(?:live|token)_/i;
/** Public, and tells the operator which one to revoke. */
const PUBLIC_PART = /^[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_/i;

/** A path that does not match holds no secret: nearly all do not. */
const SUSPECT = new RegExp(`%|_(?:live|token)_|[\\w-]{${SECRET_LENGTH_MIN}}`, 'i');

/** Ends where a key, a token or another secret begins: a mistyped one may continue after any character. */
export function loggedPath(path: string): string {
  if (path.length <= CHARACTERS_MAX && !SUSPECT.test(path)) return path;
  for (const { 0: run, index } of path.matchAll(RUN_OR_ESCAPE)) {
    const plain = run.replace(ENCODED_CHARACTER, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (plain.length < SECRET_LENGTH_MIN && !KEY_OR_TOKEN.test(plain)) continue;
    // Cut last: a secret cut short could pass.
    return `${path.slice(0, index)}${PUBLIC_PART.exec(plain)?.[0] ?? ''}[redacted]`.slice(0, CHARACTERS_MAX);
  }
  return path.slice(0, CHARACTERS_MAX);
}
