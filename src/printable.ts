/** Text for logs and terminals: without control characters, without secrets. */

/**
 * Text that is safe on a terminal: control characters other than line breaks and tabs become visible escapes. Names of
 * dropped files and of publishers come from outside, and could otherwise rewrite the operator's screen.
 *
 * @param text may be JSON, which keeps its meaning: there, such characters occur only in strings
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export const REDACTED = '[redacted]';

/** After a parameter, a scheme, or the public part of a key or token; or the user and password of an address. */
const SECRET_IN_TEXT =
  /((?:[?&](?:\w*_)?(?:signature|token|key|secret)=)|\b(?:Bearer|Basic) |\b[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_)[\w~+/=.%-]+|(?<=:\/\/)[^\s/?#@'"]+(?=@)/gi;
/** A fast check, since this runs for every request: every form of a secret contains one of these. */
const SUSPECT = /[ =@]|_(?:live|token)_/i;

/** A text without keys and tokens, and without secrets in addresses and Authorization values. */
export function cleanText(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text.replace(SECRET_IN_TEXT, (_all, before = '') => `${before}${REDACTED}`);
}
