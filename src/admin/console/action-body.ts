/** The body of an action, read member by member by the rules that the commands have for their options. */

import type { Reading } from '../../config/terms.ts';
import type { ExportName } from '../../detection/content-type.ts';
import { isExportName } from '../../detection/content-type.ts';
import { Refused } from '../../refused.ts';
import { parseInstant, WINDOW_MS } from '../../time.ts';

export class ActionBody {
  readonly #members: ReadonlyMap<string, unknown>;

  /** @throws Refused `invalid_request` when it is no JSON object of these members; so do all below */
  constructor(text: string, names: readonly string[]) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw invalid('the body is no JSON');
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalid('the body is no JSON object');
    this.#members = new Map(Object.entries(value));
    for (const name of this.#members.keys())
      if (!names.includes(name)) throw invalid(`${name}: there is no such member`);
  }

  /** @param read a rule for the text */
  text<Value>(name: string, read: (text: string) => Reading<Value>): Value {
    const value = this.#members.get(name);
    if (typeof value !== 'string') throw invalid(`${name}: it is required, as text`);
    return readingOf(name, read(value));
  }

  optional<Value, Other>(
    name: string,
    read: (text: string) => Reading<Value>,
    otherwise: Other,
  ): Value | Other {
    return this.#members.has(name) ? this.text(name, read) : otherwise;
  }

  list<Value>(name: string, read: (items: readonly string[]) => Reading<Value>): Value {
    const value = this.#members.get(name);
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
      throw invalid(`${name}: it is required, as a list of texts`);
    return readingOf(name, read(value));
  }

  optionalList<Value, Other>(
    name: string,
    read: (items: readonly string[]) => Reading<Value>,
    otherwise: Other,
  ): Value | Other {
    return this.#members.has(name) ? this.list(name, read) : otherwise;
  }

  /** A whole number, read by the rule for its text. */
  number<Value>(name: string, read: (text: string) => Reading<Value>, otherwise: Value): Value {
    const value = this.#members.get(name);
    if (value === undefined) return otherwise;
    if (typeof value !== 'number') throw invalid(`${name}: expected a number`);
    return readingOf(name, read(`${value}`));
  }
}

export function readExport(text: string): Reading<ExportName> {
  return isExportName(text)
    ? { kind: 'read', value: text }
    : { kind: 'wrong', expected: 'newswire or imagewire' };
}

export function readTime(text: string): Reading<number> {
  const value = parseInstant(text);
  return value === null
    ? { kind: 'wrong', expected: 'a time such as 2026-11-21T10:10:00Z' }
    : { kind: 'read', value };
}

export function readWindowStart(text: string): Reading<number> {
  const value = parseInstant(text);
  return value === null || value % WINDOW_MS !== 0
    ? { kind: 'wrong', expected: 'a multiple of ten minutes such as 2026-11-21T10:10:00Z' }
    : { kind: 'read', value };
}

function readingOf<Value>(name: string, reading: Reading<Value>): Value {
  if (reading.kind === 'wrong') throw invalid(`${name}: expected ${reading.expected}`);
  return reading.value;
}

function invalid(detail: string): Refused {
  return new Refused('invalid_request', detail);
}
