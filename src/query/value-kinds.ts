/** The kinds of parameters: how a value is read, what a detail says of it, and its JSON Schema. */
import { domainToASCII } from 'node:url';
import { type TSchema, Type } from '@sinclair/typebox';
import { grouped } from '../counted.ts';
import { parseInstant } from '../time.ts';
import { type Parameter, single } from './parameters.ts';

/** An integer in its one spelling: no sign, no leading zero, no decimals. */
export function integer(minimum: number, maximum: number): Parameter<number> {
  const parse = (text: string) => {
    const value = /^(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : -1;
    return value < minimum || value > maximum ? null : value;
  };
  const must = `be an integer from ${minimum} to ${grouped(maximum)}`;
  return single(parse, must, Type.Integer({ minimum, maximum }));
}

/** One of some words. @param values what each of them means; @param schema where it is another than these words */
export function choice<Value>(values: Readonly<Record<string, Value>>, schema?: TSchema): Parameter<Value> {
  const words = Object.keys(values);
  const last = words.at(-1) ?? '';
  return single(
    (text) => (Object.hasOwn(values, text) ? (values[text] ?? null) : null),
    `be ${words.length > 1 ? `${words.slice(0, -1).join(', ')} or ` : ''}${last}`,
    schema ?? Type.Union(words.map((word) => Type.Literal(word))),
  );
}

export const BOOLEAN = choice({ true: true, false: false }, Type.Boolean());

export const text = (schema: TSchema = Type.String({ minLength: 1 })): Parameter<string> =>
  single((any) => any, 'be a text', schema);

export const ANY_TEXT = text();

export function shortText(maxLength: number): Parameter<string> {
  const parse = (any: string) => ([...any].length > maxLength ? null : any);
  return single(parse, `not exceed ${maxLength} characters`, Type.String({ minLength: 1, maxLength }));
}

const DOMAIN_CHARACTERS_MAX = 253;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** A domain, or an http(s) address of nothing else, in lower case and punycode; null for anything else. */
export function parseDomain(text: string): string | null {
  const [, ofAddress] = /^https?:\/\/([^/]*)\/?$/i.exec(text) ?? [];
  const host = ofAddress ?? text;
  // Before the conversion, which drops tabs, decodes percent signs and reads a backslash as a slash.
  if (/[\s/\\:?#@%[\]]|\p{Cc}/u.test(host)) return null;
  const domain = domainToASCII(host);
  if (domain === '' || domain.length > DOMAIN_CHARACTERS_MAX) return null;
  return domain.split('.').every((label) => LABEL.test(label)) ? domain : null;
}

export const DOMAIN = single(
  parseDomain,
  'be a domain such as example.com, without a path, port, query, fragment or user name',
  Type.String({ minLength: 1 }),
);

/** Up to nine fractional digits: Python writes six, Go and Java nine. They are cut to milliseconds. */
const INSTANT_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
/** A `+` that was not encoded arrives as a space: it can only be the sign of the offset. */
const OFFSET_WITH_SPACE = /^(.{19,29}) (\d\d:\d\d)$/;

export const INSTANT_EXPECTED =
  'an ISO 8601 time with Z or an offset and up to nine fractional digits, such as 2026-11-21T10:00:00Z';

/** An ISO 8601 time with `Z` or an offset; `t` and `z` as in RFC 3339. @returns epoch milliseconds, or null */
export function readInstant(text: string): number | null {
  const spelled = text.replace(OFFSET_WITH_SPACE, '$1+$2');
  return INSTANT_FORM.test(spelled) ? parseInstant(spelled) : null;
}

export const INSTANT = single(readInstant, `be ${INSTANT_EXPECTED}`, Type.String({ format: 'date-time' }));
