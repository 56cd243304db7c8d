/** Kinds of values that parameters take: how one is read, what a detail says of it, and its JSON Schema. */
import { type TSchema, Type } from '@sinclair/typebox';
import { grouped } from '../counted.ts';
import { parseDomain } from './domain.ts';
import { INSTANT_EXPECTED, readInstant } from './instant.ts';

export interface ValueKind<Value> {
  /** @returns null where the text is no such value */
  readonly parse: (text: string) => Value | null;
  /** Follows "must" in a detail. */
  readonly must: string;
  /** A reference in it names a component of the OpenAPI document. */
  readonly schema: TSchema;
}

/** An integer in its one spelling: no sign, no leading zero, no decimals. */
export function integer(minimum: number, maximum: number): ValueKind<number> {
  return {
    parse(text) {
      const value = /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : -1;
      return value < minimum || value > maximum ? null : value;
    },
    must: `be an integer from ${minimum} to ${grouped(maximum)}`,
    schema: Type.Integer({ minimum, maximum }),
  };
}

/** One of some words. @param values what each of them means; @param schema where it is another than these words */
export function choice<Value>(values: Readonly<Record<string, Value>>, schema?: TSchema): ValueKind<Value> {
  const words = Object.keys(values);
  const last = words.at(-1) ?? '';
  const literals = words.map((word) => Type.Literal(word));
  return {
    parse: (text) => (Object.hasOwn(values, text) ? (values[text] ?? null) : null),
    must: `be ${words.length > 1 ? `${words.slice(0, -1).join(', ')} or ` : ''}${last}`,
    schema: schema ?? (literals.length === 1 ? Type.Literal(last) : Type.Union(literals)),
  };
}

export const BOOLEAN = choice({ true: true, false: false }, Type.Boolean());

/** Any text. @param schema where it is narrower, as for a cursor, which its endpoint reads */
export function text(schema: TSchema = Type.String({ minLength: 1 })): ValueKind<string> {
  return { parse: (any) => any, must: 'be a text', schema };
}

/** A text of so many characters. */
export function shortText(maxLength: number): ValueKind<string> {
  return {
    parse: (any) => ([...any].length > maxLength ? null : any),
    must: `not exceed ${maxLength} characters`,
    schema: Type.String({ minLength: 1, maxLength }),
  };
}

/** As {@link parseDomain} gives it. */
export const DOMAIN: ValueKind<string> = {
  parse: parseDomain,
  must: 'be a domain such as example.com, without a path, port, query, fragment or user name',
  schema: Type.String({ minLength: 1 }),
};

/** Epoch milliseconds. */
export const INSTANT: ValueKind<number> = {
  parse: readInstant,
  must: `be ${INSTANT_EXPECTED}`,
  schema: Type.String({ format: 'date-time' }),
};
