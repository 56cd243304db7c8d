/** The log's own lines: the first line of a segment, and the last line of an entry (manual: log-format). */
import type { LogMark } from '../store/log-mark.ts';
import { LogDamage } from './log-error.ts';

/** Increased by a change that makes older builds unable to read the log. */
export const LOG_FORMAT = 1;

/** The first line of every segment. */
export interface SegmentHeader {
  readonly wirewatch_log: 'detections';
  readonly format: number;
  /** The version of the program that began the segment. */
  readonly program: string;
  /** The number of the first entry in it. */
  readonly first_entry: number;
}

/** An entry: its number (1, 2, …), and 16 random hexadecimal digits. */
export type Mark = LogMark;

/** The kind of an entry that has all rows of the database, and so starts a new log. */
export const SNAPSHOT = 'snapshot';

/** What an entry did. */
export interface Operation {
  readonly kind: string;
  readonly [member: string]: unknown;
}

/** The last line of every entry: once it is written, the entry is decided. */
export interface Commit extends Mark {
  /** The id of the previous entry; null for the first. */
  readonly after: string | null;
  /** When it was written, such as `2026-11-20T09:05:00Z`. */
  readonly at: string;
  readonly operation: Operation;
  /** Frames of the entry before this one, and the chained CRC-32 of them. */
  readonly frames: number;
  readonly checksum: number;
}

/** @throws LogDamage if the line is not a header */
export function parseHeader(line: string): SegmentHeader {
  const value: unknown = parse(line);
  if (!isObject(value) || typeof value.format !== 'number')
    throw new LogDamage('the first line is not a log header');
  const { wirewatch_log, format, program, first_entry } = value;
  if (wirewatch_log !== 'detections' || typeof program !== 'string' || typeof first_entry !== 'number')
    throw new LogDamage('the first line is not a log header');
  return { wirewatch_log, format, program, first_entry };
}

/** @throws LogDamage if the line is not a commit line */
export function parseCommit(line: string): Commit {
  const value: unknown = parse(line);
  const commit = isObject(value) ? value.commit : undefined;
  if (!isObject(commit)) throw new LogDamage('the last line of an entry is not a commit line');
  const { entry, id, after, at, operation, frames, checksum } = commit;
  if (
    typeof entry !== 'number' ||
    typeof id !== 'string' ||
    (after !== null && typeof after !== 'string') ||
    typeof at !== 'string' ||
    !isObject(operation) ||
    typeof operation.kind !== 'string' ||
    typeof frames !== 'number' ||
    typeof checksum !== 'number'
  )
    throw new LogDamage('a commit line is incomplete');
  return { entry, id, after, at, operation: { ...operation, kind: operation.kind }, frames, checksum };
}

/** @throws LogDamage if the text is not JSON */
export function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new LogDamage('a line is not valid JSON', { cause: error });
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
