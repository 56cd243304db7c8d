/** Text for logs and terminals: without control characters, without secrets. */

/**
 * Text that is safe on a terminal: control characters other than line breaks and tabs become visible escapes. Names of
 * dropped files and of publishers come from outside, and could otherwise rewrite the operator's screen.
 * @param text may be JSON, which keeps its meaning: there, such characters occur only in strings
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The same on one line: what follows a line break in a name could pass for Wirewatch's own words. */
export const printableLine = (text: string): string =>
  printable(text.replaceAll('\n', '\\n').replaceAll('\t', '\\t'));

export const REDACTED = '[redacted]';

/** After a parameter, a scheme, or the public part of a key or token; or the user and password of an address. */
const SECRET_IN_TEXT =
  /((?:[?&](?:\w*_)?(?:signature|token|key|secret)=)|\b(?:Bearer|Basic) |\b[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_)[\w~+/=.%-]+|(?<=:\/\/)[^\s/?#@'"]+(?=@)/gi;
/** A fast check, since this runs for every request: every form of a secret contains one of these. */
const SUSPECT = /[ =@]|_(?:live|token)_/i;

/**
 * The secret of a key or token is longer, and nearly every one has a digit, which a name as long has not. With four, also
 * a piece of a secret in which a character is wrong.
 */
const OPAQUE = /^(?=\D*\d).{40,}|^(?=(?:\D*\d){4}).{20,}/;
/** A character of a key or token, percent-encoded once or several times. */
const ENCODED = '%(?:25)*(2d|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f)';
const ENCODED_CHARACTER = new RegExp(ENCODED, 'gi');
/** A run of such characters; or the escape of another one, which ends a run. */
const RUN_OR_ESCAPE = new RegExp(`(?:[\\w-]|${ENCODED})+|%[0-9a-f]{2}`, 'gi');
/** Also a key that was cut off. */
const KEY_OR_TOKEN = /_(?:live|token)_/i;
/** Public, and tells the operator which one to revoke. */
const PUBLIC_PART = /^[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_/i;
/** A text that does not match holds no secret: nearly all do not. */
const MAY_BE_OPAQUE = /%|_(?:live|token)_|[\w-]{20}/i;

/**
 * A client's path or word up to where a key, a token or another secret begins, also one of another service: a mistyped
 * one may continue after any character.
 */
export function cutAtSecret(text: string): string {
  if (!MAY_BE_OPAQUE.test(text)) return text;
  for (const { 0: run, index } of text.matchAll(RUN_OR_ESCAPE)) {
    const plain = run.replace(ENCODED_CHARACTER, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (!OPAQUE.test(plain) && !KEY_OR_TOKEN.test(plain)) continue;
    return `${text.slice(0, index)}${PUBLIC_PART.exec(plain)?.[0] ?? ''}${REDACTED}`;
  }
  return text;
}

/** A text without keys and tokens, and without secrets in addresses and Authorization values. */
export function cleanText(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text.replace(SECRET_IN_TEXT, (_all, before = '') => `${before}${REDACTED}`);
}
