/** Reads the body of an action, member by member, by the rules of the commands' options. */
import type { Reading } from '../../config/option-values.ts';
import { type ExportName, isExportName } from '../../detection/content-type.ts';
import { Refused } from '../../refused.ts';
import { parseInstant, WINDOW_MS } from '../../time.ts';

/** The rule of a member; the value is undefined if it is absent. */
type Member<Value> = (value: unknown) => Reading<Value>;

export type Members = Readonly<Record<string, Member<unknown>>>;

export type Values<Of extends Members> = {
  readonly [Name in keyof Of]: Of[Name] extends Member<infer Value> ? Value : never;
};

export function text<Value>(read: (text: string) => Reading<Value>): Member<Value> {
  return (value) => (typeof value === 'string' ? read(value) : expected('text'));
}

export function list<Value>(read: (items: readonly string[]) => Reading<Value>): Member<Value> {
  return (value) =>
    Array.isArray(value) && value.every((item) => typeof item === 'string')
      ? read(value)
      : expected('a list of texts');
}

/** @param read the rule of its text */
export function number<Value>(read: (text: string) => Reading<Value>): Member<Value> {
  return (value) => (typeof value === 'number' ? read(`${value}`) : expected('a number'));
}

export function optional<Value, Other>(member: Member<Value>, otherwise: Other): Member<Value | Other> {
  return (value) => (value === undefined ? { kind: 'read', value: otherwise } : member(value));
}

/** @throws Refused `invalid_request` unless it is a JSON object with these members */
export function readBody<Of extends Members>(body: string, members: Of): Values<Of> {
  const raw = new Map(Object.entries(objectOf(body)));
  for (const name of raw.keys())
    if (!Object.hasOwn(members, name)) throw invalid(`${name}: there is no such member`);
  const values: unknown[][] = Object.entries(members).map(([name, read]) => {
    const reading = read(raw.get(name));
    if (reading.kind === 'wrong') throw invalid(`${name}: expected ${reading.expected}`);
    return [name, reading.value];
  });
  return Object.fromEntries(values);
}

function objectOf(body: string): object {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {}
  throw invalid('the body is no JSON object');
}

export function readExport(text: string): Reading<ExportName> {
  return isExportName(text) ? { kind: 'read', value: text } : expected('newswire or imagewire');
}

export function readTime(text: string): Reading<number> {
  const value = parseInstant(text);
  return value === null ? expected('a time such as 2026-11-21T10:10:00Z') : { kind: 'read', value };
}

export function readWindowStart(text: string): Reading<number> {
  const value = parseInstant(text);
  return value === null || value % WINDOW_MS !== 0
    ? expected('a multiple of ten minutes such as 2026-11-21T10:10:00Z')
    : { kind: 'read', value };
}

function expected(what: string): Reading<never> {
  return { kind: 'wrong', expected: what };
}

function invalid(detail: string): Refused {
  return new Refused('invalid_request', detail);
}
