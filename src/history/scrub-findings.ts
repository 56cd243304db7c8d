/** What a scrub can find: by kind, counted, the first of each named. The manual is made from this table. */

interface FindingKind {
  /** What is damaged. */
  readonly of: 'log' | 'database' | 'secret';
  readonly means: string;
}

export const FINDING_KINDS = {
  'log damaged': {
    of: 'log',
    means: 'A part of the log is missing or changed: the database cannot be made from it.',
  },
  'database malformed': {
    of: 'database',
    means: 'SQLite cannot read a part of the database, or its tables are not those of this program.',
  },
  'row missing': { of: 'database', means: 'The log has a row that the database lacks.' },
  'row too many': { of: 'database', means: 'The database has a row that the log does not have.' },
  'row differs': { of: 'database', means: 'A row of the database is not as the log says.' },
  'index disagrees': {
    of: 'database',
    means: 'An index of the database does not lead to exactly the rows that are there.',
  },
  'secret missing': {
    of: 'secret',
    means: 'Every cursor, access token and photo address that was given out will be refused.',
  },
} as const satisfies Record<string, FindingKind>;

export const WHAT_TO_DO: Readonly<Record<FindingKind['of'], string>> = {
  log: 'Stop the appliance and restore the backup over it (wirewatch restore BACKUP --replace): damaged parts are filled from the backup, and what the log has beyond it is kept. Without a backup, copy the data folder to a safe place and begin the log anew from the database: wirewatch rebuild --log. Check the disk.',
  database: 'Restart the appliance: it makes a damaged database anew from its log. Check the disk.',
  secret: 'Stop the appliance and restore a backup: wirewatch restore BACKUP --replace',
};

export type FindingKindName = keyof typeof FINDING_KINDS;

export interface ScrubFinding {
  readonly kind: FindingKindName;
  readonly count: number;
  /** What and where, of the first ones. */
  readonly first: readonly string[];
}

/** Of one kind; more than these are only counted. */
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

export function findingKinds(): FindingKindName[] {
  return Object.keys(FINDING_KINDS).filter((name): name is FindingKindName =>
    Object.hasOwn(FINDING_KINDS, name),
  );
}

/** In one line, for an alert. */
export function describeFindings(findings: readonly ScrubFinding[]): string {
  return findings
    .map(({ kind, count, first }) => `${count.toLocaleString('en-US')} x ${kind} (${first[0] ?? ''})`)
    .join('; ');
}
