/** Values of flags, variables and the configuration file before they are checked, and how a message shows them. No I/O. */

export type RawValue = {
  /** where, for a message: `--port`, `WIREWATCH_SERVER_PORT`, `FILE, [server] port` */
  place: string;
  value: unknown;
  /** the folder in which a relative path starts */
  folder: string;
};

const FOUND_CHARACTERS_MAX = 80;

/** TOML has a type for times: a time may be written with or without quotes, also in a table. */
export function plainValue(value: unknown): unknown {
  if (isTable(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainValue(member)]));
  if (!(value instanceof Date)) return value;
  const text = value.toISOString();
  return text.endsWith('.000Z') ? text.replace('.000Z', 'Z') : text;
}

export function isTable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** A value for a message: short, on one line, without a password in an address. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isTable(value)) return 'a section';
  const text = (JSON.stringify(value) ?? String(value)).replace(/\/\/[^/@]*@/, '//…@');
  return text.length <= FOUND_CHARACTERS_MAX ? text : `${text.slice(0, FOUND_CHARACTERS_MAX)}…`;
}
