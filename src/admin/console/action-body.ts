/** The body of an action, read member by member by the rules that the commands have for their options. */
import type { Reading } from '../../config/option-values.ts';
import { type ExportName, isExportName } from '../../detection/content-type.ts';
import { Refused } from '../../refused.ts';
import { parseInstant, WINDOW_MS } from '../../time.ts';

/** How a member is read; undefined where it is left out. */
export type Member<Value> = (given: unknown) => Reading<Value>;

type Values<Members> = {
  readonly [Name in keyof Members]: Members[Name] extends Member<infer V> ? V : never;
};

export function text<Value>(read: (text: string) => Reading<Value>): Member<Value> {
  return (given) => (typeof given === 'string' ? read(given) : expected('text'));
}

export function list<Value>(read: (items: readonly string[]) => Reading<Value>): Member<Value> {
  return (given) =>
    Array.isArray(given) && given.every((item) => typeof item === 'string')
      ? read(given)
      : expected('a list of texts');
}

/** @param read the rule for its text */
export function number<Value>(read: (text: string) => Reading<Value>): Member<Value> {
  return (given) => (typeof given === 'number' ? read(`${given}`) : expected('a number'));
}

export function optional<Value, Other>(member: Member<Value>, otherwise: Other): Member<Value | Other> {
  return (given) => (given === undefined ? { kind: 'read', value: otherwise } : member(given));
}

/** @throws Refused `invalid_request` when it is no JSON object of these members */
export function readBody<Members extends Readonly<Record<string, Member<unknown>>>>(
  body: string,
  members: Members,
): Values<Members> {
  const given = new Map(Object.entries(objectOf(body)));
  for (const name of given.keys())
    if (!Object.hasOwn(members, name)) throw invalid(`${name}: there is no such member`);
  const values: unknown[][] = Object.entries(members).map(([name, read]) => {
    const reading = read(given.get(name));
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
