/** Errors in the lines of an export file: counted by kind, with values short enough to show. Pure. */
import type { RowError } from '../rules/check-row.ts';

export interface LineError extends RowError {
  readonly line: number;
}

/** Errors of one kind: of one column, where the same was expected. */
export interface ErrorGroup {
  readonly column: string | null;
  readonly expected: string;
  readonly count: number;
  /** The first lines that have it. */
  readonly lines: readonly number[];
  /** What the first of them has there. */
  readonly value: unknown;
}

const GROUPS_MAX = 20;
const GROUP_LINES_MAX = 5;
const VALUE_CHARACTERS_MAX = 200;

/** Errors counted by kind. */
export class ErrorGroups {
  readonly #groups = new Map<string, { first: LineError; count: number; lines: number[] }>();

  add(error: LineError): void {
    const key = `${error.column} ${error.expected}`;
    const group = this.#groups.get(key);
    if (group !== undefined) {
      group.count += 1;
      if (group.lines.length < GROUP_LINES_MAX) group.lines.push(error.line);
    } else if (this.#groups.size < GROUPS_MAX) {
      this.#groups.set(key, { first: { ...error, ...shortened(error) }, count: 1, lines: [error.line] });
    }
  }

  all(): ErrorGroup[] {
    return [...this.#groups.values()].map(({ first, count, lines }) => {
      const { column, expected, value } = first;
      return { column, expected, count, lines, value };
    });
  }
}

/** Values in reasons are for a person to find the row by: long ones are cut. */
export function shortened(error: RowError): RowError {
  const { value } = error;
  const text = typeof value === 'string' ? value : jsonText(value);
  if (text === null) return { ...error, value: NESTED_TOO_DEEPLY };
  if (text === undefined || text.length <= VALUE_CHARACTERS_MAX) return error;
  return { ...error, value: `${text.slice(0, VALUE_CHARACTERS_MAX)}…` };
}

/** What stands for a value that cannot be repeated. */
export const NESTED_TOO_DEEPLY = '(nested too deeply to show)';

/** A value as JSON; null when it is nested more deeply than can be written, which reading it can be. */
export function jsonText(value: unknown): string | null | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
