/**
 * Reads a query string, strictly (contract: Strict parameters).
 *
 * An unknown parameter, an empty value and a single-valued parameter given twice are refused, each by its name:
 * a filter that is misspelt and passed over would give a client rows it did not ask for.
 */
import { grouped } from '../counted.ts';
import { cleanText } from '../printable.ts';
import { Refused } from '../refused.ts';

/** The parameters of an endpoint: whether each is given once, or repeated and as a comma-separated list. */
export type ParameterTable = Readonly<Record<string, 'single' | 'list'>>;

/** What was given: decoded values by name; the values of a list one by one. */
export type Parameters = ReadonlyMap<string, readonly string[]>;

const NAME_CHARACTERS_SHOWN_MAX = 60;
/** What stands for itself, as nearly all that is sent does. */
const PLAIN = /^[\w.:~,-]*$/;

/**
 * @param raw what follows the `?`, without it; empty when there is none
 * @throws Refused `invalid_request`
 */
export function parseParameters(raw: string, table: ParameterTable): Parameters {
  const parameters = new Map<string, string[]>();
  if (raw === '') return parameters;
  for (const part of raw.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals), 'a parameter name');
    const kind = Object.hasOwn(table, name) ? table[name] : undefined;
    if (kind === undefined) throw invalid(`unknown parameter ${shown(name)}`);
    const value = equals < 0 ? '' : decode(part.slice(equals + 1), name);
    if (value === '') throw invalid(`${name}: must not be empty`);
    const values = parameters.get(name);
    if (values !== undefined && kind === 'single') throw invalid(`${name}: must not be repeated`);
    const given = kind === 'list' ? listItems(name, value) : [value];
    if (values === undefined) parameters.set(name, given);
    else for (const item of given) values.push(item);
  }
  return parameters;
}

/** The value of a single-valued parameter; null when it is not given. */
export function readText(parameters: Parameters, name: string): string | null {
  return parameters.get(name)?.[0] ?? null;
}

/** An integer in its one spelling: no sign, no leading zero, no decimals. */
export function readInteger(parameters: Parameters, name: string, min: number, max: number): number | null {
  const text = readText(parameters, name);
  return text === null ? null : integer(name, text, min, max);
}

/** A list of integers, without duplicates. @param countMax judged once duplicates are gone */
export function readIntegers(
  parameters: Parameters,
  name: string,
  { min, max, countMax }: { min: number; max: number; countMax: number },
): number[] | null {
  return readList(parameters, name, countMax, (text) => integer(name, text, min, max));
}

/** A list, each value read by `parse`, without duplicates. */
export function readList<Value>(
  parameters: Parameters,
  name: string,
  countMax: number,
  parse: (text: string) => Value,
): Value[] | null {
  const texts = parameters.get(name);
  if (texts === undefined) return null;
  const values = [...new Set(texts.map(parse))];
  if (values.length > countMax) throw invalid(`${name}: must not have more than ${countMax} values`);
  return values;
}

/** A refusal of a parameter. @param detail begins with the parameter's name */
export function invalid(detail: string): Refused {
  return new Refused('invalid_request', detail);
}

function integer(name: string, text: string, min: number, max: number): number {
  const value = /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : -1;
  if (value < min || value > max) throw invalid(`${name}: must be an integer from ${min} to ${grouped(max)}`);
  return value;
}

function listItems(name: string, value: string): string[] {
  const items = value.split(',');
  if (items.includes('')) throw invalid(`${name}: must not contain an empty value`);
  return items;
}

/**
 * Percent-decodes a name or value; `+` is a space, and bytes that a client left unencoded are read as UTF-8.
 *
 * @param what it is, for the refusal
 */
function decode(text: string, what: string): string {
  if (PLAIN.test(text)) return text;
  const escaped = text
    .replaceAll('+', ' ')
    .replace(/[\u0080-\u00ff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  try {
    return decodeURIComponent(escaped);
  } catch {
    throw invalid(`${what}: must be valid percent-encoded UTF-8`);
  }
}

/** A client's own word in a detail: quoted, and not longer than it helps. */
export function shown(text: string): string {
  const clean = cleanText(text);
  const characters = [...clean];
  if (characters.length <= NAME_CHARACTERS_SHOWN_MAX) return JSON.stringify(clean);
  return `${JSON.stringify(characters.slice(0, NAME_CHARACTERS_SHOWN_MAX).join(''))} …`;
}
