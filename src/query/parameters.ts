/**
 * Reads a query string, strictly, by a table that is also the document's. An unknown parameter, an empty value and a
 * single-valued parameter given twice are refused, each by its name: a misspelt filter that is ignored would give a client
 * rows it did not ask for.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import { cleanText, cutAtSecret } from '../printable.ts';
import { Refused } from '../refused.ts';

export interface Parameter<Value = unknown> {
  /** Repeated and comma-separated, where another parameter is given once. */
  readonly isList: boolean;
  /** @param texts at least one, decoded; @throws Refused `invalid_request` */
  readonly read: (texts: readonly string[], name: string) => Value;
  readonly schema: TSchema;
  /** The value where the parameter is not sent. Without it: null. */
  readonly fallback?: Value;
  /** Where it must be sent: what to send. */
  readonly required?: string;
}

/** A parameter of the API, as the OpenAPI document shows it. */
export type DocumentedParameter<Value = unknown> = Parameter<Value> &
  Readonly<{ description: string; example: unknown }>;

export type ParameterTable = Readonly<Record<string, Parameter>>;

type ValueOf<One> =
  One extends Parameter<infer Value>
    ? One extends { readonly fallback: Value } | { readonly required: string }
      ? Value
      : Value | null
    : never;

export type ValuesOf<Table extends ParameterTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/**
 * A parameter that is given once.
 * @param parse gives null for a text that is no value; @param must what the detail says of such a text, after "must"
 * @param schema a reference in it names a component of the OpenAPI document
 */
export function single<Value>(parse: (text: string) => Value | null, must: string, schema: TSchema) {
  const read = ([text = '']: readonly string[], name: string) => {
    const value = parse(text);
    if (value === null) throw invalid(`${name}: must ${must}`);
    return value;
  };
  return { isList: false, read, schema };
}

/** A parameter with a default. @param written the default as the document shows it */
export function defaulted<Value>({ isList, read, schema }: Parameter<Value>, written: string | number) {
  return { isList, read, schema: { ...schema, default: written }, fallback: read([`${written}`], 'default') };
}

/** A list without duplicates. @param countMax once duplicates are gone */
export function list<Value>(one: Parameter<Value>, countMax = Number.POSITIVE_INFINITY): Parameter<Value[]> {
  return {
    isList: true,
    read(texts, name) {
      const values = [...new Set(texts.map((text) => one.read([text], name)))];
      if (values.length > countMax) throw invalid(`${name}: must not have more than ${countMax} values`);
      return values;
    },
    schema: Type.Array(one.schema, { minItems: 1, ...(Number.isFinite(countMax) && { maxItems: countMax }) }),
  };
}

/** @param raw what follows the `?`, without it; empty when there is none; @throws Refused `invalid_request` */
export function readParameters<Table extends ParameterTable>(raw: string, table: Table): ValuesOf<Table>;
export function readParameters(raw: string, table: ParameterTable): ValuesOf<ParameterTable> {
  const sent = parseParameters(raw, table);
  const values: Record<string, unknown> = {};
  // Read for every request: Object.entries would take twice as long.
  for (const name in table) {
    const parameter = table[name];
    const texts = sent.get(name);
    if (parameter === undefined) continue;
    if (texts !== undefined) values[name] = parameter.read(texts, name);
    else if (parameter.required === undefined) values[name] = parameter.fallback ?? null;
    else throw invalid(`${name}: required. Send ${parameter.required}`);
  }
  return values;
}

const NAME_CHARACTERS_SHOWN_MAX = 60;
/** Needs no decoding, like nearly everything that clients send. */
const PLAIN = /^[\w.:~,-]*$/;

/** @returns decoded texts by name; those of a list one by one. @throws Refused `invalid_request` */
function parseParameters(raw: string, table: ParameterTable): Map<string, string[]> {
  const parameters = new Map<string, string[]>();
  if (raw === '') return parameters;
  for (const part of raw.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals < 0 ? part : part.slice(0, equals), 'a parameter name');
    const parameter = Object.hasOwn(table, name) ? table[name] : undefined;
    if (parameter === undefined) throw invalid(`unknown parameter ${shown(name)}`);
    const value = equals < 0 ? '' : decode(part.slice(equals + 1), name);
    if (value === '') throw invalid(`${name}: must not be empty`);
    const values = parameters.get(name);
    if (values !== undefined && !parameter.isList) throw invalid(`${name}: must not be repeated`);
    const items = parameter.isList ? value.split(',') : [value];
    if (items.includes('')) throw invalid(`${name}: must not contain an empty value`);
    if (values === undefined) parameters.set(name, items);
    else for (const item of items) values.push(item);
  }
  return parameters;
}

/** @param detail begins with the parameter's name */
export const invalid = (detail: string) => new Refused('invalid_request', detail);

/** Percent-decodes a name or value; `+` is a space. @param what it is, for the error */
export function decode(raw: string, what: string): string {
  if (PLAIN.test(raw)) return raw;
  try {
    return decodeURIComponent(raw.replaceAll('+', ' '));
  } catch {
    throw invalid(`${what}: must be valid percent-encoded UTF-8`);
  }
}

/** A client's own word in a detail: quoted, without secrets, and cut. */
export function shown(word: string): string {
  const clean = cutAtSecret(cleanText(word));
  const characters = [...clean];
  if (characters.length <= NAME_CHARACTERS_SHOWN_MAX) return JSON.stringify(clean);
  return `${JSON.stringify(characters.slice(0, NAME_CHARACTERS_SHOWN_MAX).join(''))} …`;
}
