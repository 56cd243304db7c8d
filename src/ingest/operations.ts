/**
 * The operations that the journal is a log of: everything that a database which was put back must be led through
 * again, with what is needed to do it in the same way.
 *
 * An operation is one line and one transaction. A window's file is one (`applied`); a backfill is one for the
 * beginning (`began`), one for each part, and one for its end (`applied`); a replay is one for each part that
 * changed something; a subscription that is removed is one. Files that were not applied are among them for the sake
 * of their records and windows, and so are windows that the daily look found missing.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { formatMs } from '../time.ts';
import type { ApplyCounts } from './apply.ts';
import type { FileOutcome, FileRecord } from './file-record.ts';
import type { OrderWithoutSession } from './reader-client.ts';
import { type Rules, RulesSchema } from './rules.ts';

/** A file's record, but for what the line itself says. */
type Recorded = Omit<FileRecord, 'number' | 'outcome' | 'sha256' | 'destination'>;

const Count = Type.Integer({ minimum: 0 });
const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Sha256 = Nullable(Type.String());
const RecordedSchema = Type.Unsafe<Recorded>(
  Type.Object({
    name: Type.String(),
    export: Nullable(Type.Union(EXPORT_NAMES.map((name) => Type.Literal(name)))),
    window_start: Nullable(Type.Integer()),
    label: Nullable(Type.String()),
    bytes: Count,
    taken_at: Type.Integer(),
    finished_at: Nullable(Type.Integer()),
    rows_applied: Count,
    report: Type.Object({}),
  }),
);
const CountsSchema = Type.Object({ created: Count, updated: Count, rescored: Count, unchanged: Count });

/** How rows were read: by which time what a row leaves open was filled in, and under which rules. */
const Reading = { read_at: Type.String(), rules: RulesSchema };
/** Rows of a file, from behind one to one. */
const Span = { from: Count, through: Count, counts: CountsSchema, ...Reading };
const Windows = {
  export: Type.Union(EXPORT_NAMES.map((name) => Type.Literal(name))),
  since: Type.Integer(),
};
/** The operation that it follows on: where its line ends. */
const after = Count;

const Applied = Type.Object({
  applied: Count,
  archived: Type.String(),
  sha256: Type.String(),
  replaces: Type.Optional(Count),
  record: RecordedSchema,
  /** Absent at the end of a backfill, whose rows are in its parts. */
  reading: Type.Optional(Type.Object(Reading)),
  after,
});
const Began = Type.Object({ began: Count, sha256: Type.String(), record: RecordedSchema, after });
const Part = Type.Object({ part: Count, ...Span, after });
const Replayed = Type.Object({ replayed: Count, ...Span, after });
const Unapplied = Type.Object({
  unapplied: Count,
  outcome: Type.Unsafe<Exclude<FileOutcome, 'applying' | 'applied'>>(
    Type.Union(['repeated', 'failed', 'refused', 'held'].map((outcome) => Type.Literal(outcome))),
  ),
  moved_to: Type.String(),
  sha256: Sha256,
  replaces: Type.Optional(Count),
  record: RecordedSchema,
  after,
});
const Missing = Type.Object({ missing: Type.Array(Type.Integer()), ...Windows, after });
const Abandoned = Type.Object({ abandoned: Type.Array(Type.Integer()), ...Windows, after });
/** Missing windows were looked for. */
const Looked = Type.Object({ looked: Type.Integer(), after });
/** All that there was of a subscription is gone. */
const Removed = Type.Object({ removed: Type.Integer(), after });
/** Versions were raised; what stands before it is done again under the raise. */
const Raised = Type.Object({ raised: Count, raised_at: Type.Integer(), reason: Type.String(), after });

export type AppliedLine = Static<typeof Applied>;
export type BeganLine = Static<typeof Began>;
export type PartLine = Static<typeof Part>;
export type ReplayedLine = Static<typeof Replayed>;
export type UnappliedLine = Static<typeof Unapplied>;
type MissingLine = Static<typeof Missing>;
type AbandonedLine = Static<typeof Abandoned>;
type LookedLine = Static<typeof Looked>;
type RemovedLine = Static<typeof Removed>;
type RaisedLine = Static<typeof Raised>;

export type Operation =
  | { readonly kind: 'applied'; readonly line: AppliedLine }
  | { readonly kind: 'began'; readonly line: BeganLine }
  | { readonly kind: 'part'; readonly line: PartLine }
  | { readonly kind: 'replayed'; readonly line: ReplayedLine }
  | { readonly kind: 'unapplied'; readonly line: UnappliedLine }
  | { readonly kind: 'missing'; readonly line: MissingLine }
  | { readonly kind: 'abandoned'; readonly line: AbandonedLine }
  | { readonly kind: 'looked'; readonly line: LookedLine }
  | { readonly kind: 'removed'; readonly line: RemovedLine }
  | { readonly kind: 'raised'; readonly line: RaisedLine };

/** Whether a line states an operation that this program cannot read: of a newer one, or damaged. */
export function isUnreadable(line: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(line, 'after') && operationOf(line) === null;
}

/** The operation that a line of the journal states; null: another line. */
export function operationOf(line: Readonly<Record<string, unknown>>): Operation | null {
  if (Value.Check(Applied, line)) return { kind: 'applied', line };
  if (Value.Check(Part, line)) return { kind: 'part', line };
  if (Value.Check(Replayed, line)) return { kind: 'replayed', line };
  if (Value.Check(Began, line)) return { kind: 'began', line };
  if (Value.Check(Unapplied, line)) return { kind: 'unapplied', line };
  if (Value.Check(Missing, line)) return { kind: 'missing', line };
  if (Value.Check(Abandoned, line)) return { kind: 'abandoned', line };
  if (Value.Check(Looked, line)) return { kind: 'looked', line };
  if (Value.Check(Removed, line)) return { kind: 'removed', line };
  if (Value.Check(Raised, line)) return { kind: 'raised', line };
  return null;
}

export function appliedLine(
  record: FileRecord,
  reading: object | null,
  replaces: number | undefined,
): object {
  return {
    applied: record.number,
    archived: record.destination,
    sha256: record.sha256,
    at: formatMs(record.finished_at ?? record.taken_at),
    ...(replaces === undefined ? {} : { replaces }),
    ...(reading === null ? {} : { reading }),
    record: recorded(record),
  };
}

export function beganLine(record: FileRecord): object {
  return { began: record.number, sha256: record.sha256, record: recorded(record) };
}

export function unappliedLine(record: FileRecord, replaces: number | undefined): object {
  return {
    unapplied: record.number,
    outcome: record.outcome,
    moved_to: record.destination,
    sha256: record.sha256,
    ...(replaces === undefined ? {} : { replaces }),
    record: recorded(record),
  };
}

/** @param counts what became of the rows from behind `from` to `through` */
export function spanLine(
  kind: 'part' | 'replayed',
  number: number,
  span: { readonly from: number; readonly through: number; readonly counts: ApplyCounts },
  reading: object,
): object {
  return { [kind]: number, ...span, ...reading };
}

export function readingOf(order: OrderWithoutSession, rules: Rules): object {
  return { read_at: order.exported_at_default, rules };
}

/** The record that a line states. */
export function recordIn(
  number: number,
  outcome: FileOutcome,
  { record, sha256 }: { readonly record: Recorded; readonly sha256: string | null },
  destination: string | null,
): FileRecord {
  return { ...record, number, outcome, sha256, destination };
}

function recorded({
  number: _,
  outcome: __,
  sha256: ___,
  destination: ____,
  ...record
}: FileRecord): Recorded {
  return record;
}
