/** Values as given, not yet checked, and how a message shows them. No I/O. */

const FOUND_CHARACTERS_MAX = 80;

/** TOML has a type for times; a time without quotes is as good as one with quotes. */
export function plainValue(value: unknown): unknown {
  if (!(value instanceof Date)) return value;
  const text = value.toISOString();
  return text.endsWith('.000Z') ? text.replace('.000Z', 'Z') : text;
}

export function isTable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** A value as found, short, on one line; a password in an address is not repeated. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isTable(value)) return 'a section';
  const text = (JSON.stringify(value) ?? String(value)).replace(/\/\/[^/@]*@/, '//…@');
  return text.length <= FOUND_CHARACTERS_MAX ? text : `${text.slice(0, FOUND_CHARACTERS_MAX)}…`;
}
