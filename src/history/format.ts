/**
 * What the log's own lines say: the first line of a segment, and the last line of an entry (manual: log-format).
 */
import type { LogMark } from '../store/log-mark.ts';
import { LogDamage } from './log-error.ts';

/** Raised when a build could no longer read what this one writes. */
export const LOG_FORMAT = 1;

/** Of which database a log is the history. */
export type LogKind = 'detections' | 'access';

/** The first line of every segment. */
export interface SegmentHeader {
  readonly wirewatch_log: LogKind;
  readonly format: number;
  /** The version of the program that began the segment. */
  readonly program: string;
  /** The number of the first entry in it. */
  readonly first_entry: number;
}

/** An entry: its number (1, 2, …), and 16 random hexadecimal digits. */
export type Mark = LogMark;

/** The kind of an entry that holds all that the database held, and so begins a log anew. */
export const SNAPSHOT = 'snapshot';

/** What an entry did, in words for people and with the members that its kind needs. */
export interface Operation {
  readonly kind: string;
  readonly [member: string]: unknown;
}

/** The last line of every entry: with it, the entry is decided. */
export interface Commit extends Mark {
  /** The id of the entry before; null for the first. */
  readonly after: string | null;
  /** When it was written, as the contract writes times. */
  readonly at: string;
  readonly operation: Operation;
  /** Frames of the entry before this one, and the chained CRC-32 of them. */
  readonly frames: number;
  readonly checksum: number;
}

/** @throws LogDamage when the line is none of ours */
export function parseHeader(line: string): SegmentHeader {
  const value: unknown = parse(line);
  if (!isObject(value) || typeof value.format !== 'number')
    throw new LogDamage('the first line is not a log header');
  const { wirewatch_log, format, program, first_entry } = value;
  if (
    (wirewatch_log !== 'detections' && wirewatch_log !== 'access') ||
    typeof program !== 'string' ||
    typeof first_entry !== 'number'
  )
    throw new LogDamage('the first line is not a log header');
  return { wirewatch_log, format, program, first_entry };
}

/** @throws LogDamage when the line is no commit line */
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

/** @throws LogDamage when the text is no JSON */
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
