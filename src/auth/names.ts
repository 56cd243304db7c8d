/** How accounts and other things may be called. Pure. */

const ACCOUNT_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NAME_CHARACTERS_MAX = 200;

export function isAccountId(text: string): boolean {
  return ACCOUNT_ID.test(text);
}

/** A name without blanks around it, 1 to 200 characters, none a control character; null when it is none. */
export function plainName(text: string): string | null {
  const name = text.trim();
  const length = [...name].length;
  return length >= 1 && length <= NAME_CHARACTERS_MAX && !/\p{Cc}/u.test(name) && name.isWellFormed()
    ? name
    : null;
}
