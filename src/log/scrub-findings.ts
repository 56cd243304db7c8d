/** The findings of a scrub: counted by kind, with the first of each. The manual is made from this table. */
import { grouped } from '../counted.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';

export interface FindingKind {
  /** What is damaged. */
  readonly of: 'log' | 'database' | 'access' | 'secret';
  readonly means: string;
}

export const FINDING_KINDS = {
  'log damaged': {
    of: 'log',
    means: 'Part of the log is missing or changed, so the database cannot be rebuilt from it.',
  },
  'database malformed': {
    of: 'database',
    means: 'SQLite cannot read part of the database, or its tables are not those of Wirewatch.',
  },
  'row missing': { of: 'database', means: 'A row of the log is missing from the database.' },
  'row too many': { of: 'database', means: 'The database has a row that is not in the log.' },
  'row differs': { of: 'database', means: 'A row of the database differs from the log.' },
  'index disagrees': { of: 'database', means: 'An index of the database does not match its table.' },
  'access damaged': {
    of: 'access',
    means:
      'Part of access.db or of its spare copy, with accounts, keys and the audit trail, is missing or changed.',
  },
  'secret missing': {
    of: 'secret',
    means: 'The secret is missing. All existing cursors, access tokens and photo addresses will be rejected.',
  },
} as const satisfies Record<string, FindingKind>;

export type FindingKindName = keyof typeof FINDING_KINDS;

export interface ScrubFinding {
  readonly kind: FindingKindName;
  readonly count: number;
  /** Details of the first ones. */
  readonly first: readonly string[];
}

/** Later findings of a kind are only counted. */
const FIRST_MAX = 5;

export class ScrubFindings {
  readonly #found = new Map<FindingKindName, { count: number; first: string[] }>();

  add(kind: FindingKindName, detail: string): void {
    const found = this.#found.get(kind) ?? { count: 0, first: [] };
    this.#found.set(kind, found);
    found.count += 1;
    if (found.first.length < FIRST_MAX) found.first.push(detail);
  }

  list(): ScrubFinding[] {
    return findingKinds().flatMap((kind) => {
      const found = this.#found.get(kind);
      return found === undefined ? [] : [{ kind, ...found }];
    });
  }
}

/**
 * Damage is only what the content shows. If a database cannot be opened, for lack of file descriptors or because a disk
 * fails once, rebuilding it would not help.
 * @throws if the error is not about the content: on a full disk unchanged, otherwise Refused `failed`
 */
export function throwUnlessOfContent(error: unknown, path: string): void {
  if (isDamage(error) || error instanceof Refused) return;
  if (isDiskFull(error)) throw error;
  throw failed(
    `cannot read ${path}: ${reasonOf(error)}. Nothing was found to be damaged. Check the disk and the permissions, and try again.`,
    { cause: error },
  );
}

export function findingKinds(): FindingKindName[] {
  return Object.keys(FINDING_KINDS).filter((name): name is FindingKindName =>
    Object.hasOwn(FINDING_KINDS, name),
  );
}

/** In one line, for an alert. */
export function describeFindings(findings: readonly ScrubFinding[]): string {
  return findings
    .map(({ kind, count, first }) => `${grouped(count)} x ${kind} (${first[0] ?? ''})`)
    .join('; ');
}
