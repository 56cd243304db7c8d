/** Texts made fit to be shown: nothing in them steers a terminal, and none of them tells a secret. */

/**
 * Text that is safe on a terminal: control characters but line breaks and tabs become visible escapes. Names of
 * dropped files and of publishers come from outside, and could otherwise rewrite the operator's screen, whether they
 * are shown as text or as JSON.
 *
 * @param text of JSON, it stays the same JSON: there, such characters stand in strings alone, where the escape means them
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export const REDACTED = '[redacted]';

/** Behind a parameter, a scheme, or what is public of a key or token; or the user and password of an address. */
const SECRET_IN_TEXT =
  /((?:[?&](?:\w*_)?(?:signature|token|key|secret)=)|\b(?:Bearer|Basic) |\b[a-z][a-z0-9]{0,15}_(?:live|token)_[a-z2-7]{12}_)[\w~+/=.%-]+|(?<=:\/\/)[^\s/?#@'"]+(?=@)/gi;
/** No form of a secret is without one of these, and most texts are: this is done for every request. */
const SUSPECT = /[ =@]|_(?:live|token)_/i;

/** A text without keys and tokens, and without the secrets that stand in an address or in an Authorization value. */
export function cleanText(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return text.replace(SECRET_IN_TEXT, (_all, before = '') => `${before}${REDACTED}`);
}
