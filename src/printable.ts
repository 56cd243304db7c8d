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
