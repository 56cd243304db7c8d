/**
 * The findings of a scrub: counted by kind, with the first of each (the manual is made from this table), and the result of
 * the last scrub in a file of the data folder, for the next start, status and metrics.
 */
import { readFileSync } from 'node:fs';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { grouped } from '../counted.ts';
import { getOrMake } from '../get-or-make.ts';
import { unlessError } from '../refused.ts';
import { type DataFolder, writeWhole } from '../store/folder.ts';
import { formatMs, parseInstant } from '../time.ts';

export interface FindingKind {
  /** What is damaged. */
  readonly of: 'log' | 'database' | 'access' | 'trail' | 'spare' | 'secret';
  readonly means: string;
}

export const FINDING_KINDS = {
  'log damaged': {
    of: 'log',
    means: 'Part of the log is missing or changed, so the database cannot be rebuilt from it.',
  },
  'database malformed': {
    of: 'database',
    means: 'SQLite cannot read part of the database, or its tables and indexes do not match.',
  },
  'database differs': {
    of: 'database',
    means: 'Rows of a stream, or of another table, are not those that the log makes.',
  },
  'access damaged': {
    of: 'access',
    means: 'Part of access.db, with accounts, keys and the audit trail, is missing or changed.',
  },
  'audit trail damaged': { of: 'trail', means: 'Entries of the audit trail are missing or changed.' },
  'spare copy damaged': { of: 'spare', means: 'Part of the spare copy of access.db is changed.' },
  'secret missing': {
    of: 'secret',
    means: 'The secret is missing. All existing cursors, access tokens and photo addresses will be rejected.',
  },
} as const satisfies Record<string, FindingKind>;

export type FindingKindName = keyof typeof FINDING_KINDS;

const isKind = (name: string): name is FindingKindName => Object.hasOwn(FINDING_KINDS, name);
const KIND_NAMES = Object.keys(FINDING_KINDS).filter(isKind);

const Finding = Type.Object({
  kind: Type.Union(KIND_NAMES.map((kind) => Type.Literal(kind))),
  count: Type.Number(),
  /** Details of the first ones. */
  first: Type.Array(Type.String()),
});
export type ScrubFinding = Static<typeof Finding>;

const Result = Type.Object({
  /** The last entry that was compared; null: none. */
  entry: Type.Union([Type.Number(), Type.Null()]),
  findings: Type.Array(Finding),
  /** Why the database was not compared with the log; null: it was. */
  not_compared: Type.Union([Type.String(), Type.Null()]),
});
export type ScrubResult = Static<typeof Result>;

const Record = Type.Object({ ...Result.properties, verified_at: Type.String() });

export type ScrubRecord = NonNullable<ReturnType<typeof readScrubRecord>>;

/** Later findings of a kind are only counted. */
const FIRST_MAX = 5;

export type ScrubFindings = ReturnType<typeof scrubFindings>;

export function scrubFindings() {
  const byKind = new Map<FindingKindName, ScrubFinding>();
  return {
    add(kind: FindingKindName, detail: string): void {
      const found = getOrMake(byKind, kind, () => ({ kind, count: 0, first: [] }));
      found.count += 1;
      if (found.first.length < FIRST_MAX) found.first.push(detail);
    },
    list: (): ScrubFinding[] => [...byKind.values()],
  };
}

export const findingsOf = ({ findings }: Pick<ScrubResult, 'findings'>, subject: FindingKind['of']) =>
  findings.filter(({ kind }) => FINDING_KINDS[kind].of === subject);

/** In one line, for an alert. */
export function describeFindings(findings: readonly ScrubFinding[]): string {
  const texts = findings.map(({ kind, count, first }) => `${grouped(count)} x ${kind} (${first[0] ?? ''})`);
  return texts.join('; ');
}

/** @returns `at`: epoch milliseconds; null if there is none, or the file cannot be read: the next scrub writes it again */
export function readScrubRecord({ verified }: Pick<DataFolder, 'verified'>) {
  return unlessError(null, () => {
    const { verified_at, ...record } = Value.Parse(Record, JSON.parse(readFileSync(verified, 'utf8')));
    const at = parseInstant(verified_at);
    return at === null ? null : { at, ...record };
  });
}

/** Who makes log or database anew removes it: the next scrub is due then. */
export function writeScrubRecord({ verified }: DataFolder, result: ScrubResult, nowMs: number): void {
  const record = { verified_at: formatMs(nowMs), ...result };
  writeWhole(verified, `${JSON.stringify(record, null, 2)}\n`, `${verified}-${process.pid}`);
}
