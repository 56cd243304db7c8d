/** The log's own lines: the first line of a segment, and the last line of an entry (manual: log-format). */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { LogDamage } from '../store/log-errors.ts';
import type { LogMark } from '../store/log-mark.ts';

/** Increased by a change that makes older builds unable to read the log. */
export const LOG_FORMAT = 1;

const Header = Type.Object({
  wirewatch_log: Type.Literal('detections'),
  format: Type.Number(),
  program: Type.String(),
  /** The number of the first entry in it. */
  first_entry: Type.Number(),
});

export type SegmentHeader = Readonly<Static<typeof Header>>;

/** An entry: its number (1, 2, …), and 16 random hexadecimal digits. */
export type Mark = LogMark;

/** The kind of an entry that has all rows of the database, and so starts a new log. */
export const SNAPSHOT = 'snapshot';

export type Operation = Readonly<{ kind: string; [member: string]: unknown }>;

const Commit = Type.Object({
  entry: Type.Number(),
  id: Type.String(),
  /** The id of the previous entry; null for the first. */
  after: Type.Union([Type.String(), Type.Null()]),
  /** When it was written, such as `2026-11-20T09:05:00Z`. */
  at: Type.String(),
  operation: Type.Unsafe<Operation>(Type.Object({ kind: Type.String() })),
  /** Frames of the entry before this one, and the chained CRC-32 of them. */
  frames: Type.Number(),
  checksum: Type.Number(),
});
const CommitLine = Type.Object({ commit: Commit });

/** The last line of every entry: once it is written, the entry is decided. */
export type Commit = Readonly<Static<typeof Commit>>;

/** @throws LogDamage if the value of the line is no header */
export function parseHeader(value: unknown): SegmentHeader {
  if (Value.Check(Header, value)) return value;
  throw new LogDamage('the first line is not a log header');
}

/** @throws LogDamage if the line is not a commit line */
export function parseCommit(line: string): Commit {
  const value = parse(line);
  if (Value.Check(CommitLine, value)) return value.commit;
  throw new LogDamage('the last line of an entry is not a complete commit line');
}

/** @throws LogDamage if the text is not JSON */
export function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new LogDamage('a line is not valid JSON', { cause: error });
  }
}
