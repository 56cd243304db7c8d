/**
 * What is looked at when an installation or a backup is verified: for each check what it would mean if it failed, and
 * what to do then. The manual is made from this table.
 */

interface CheckKind {
  /** What is looked at. */
  readonly looks_at: string;
  readonly means: string;
  readonly what_to_do: string;
}

const RESTORE =
  'Put a backup back: wirewatch restore FILE --replace. The files that came since are read again from archive/.';

export const CHECKS = {
  'backup file': {
    looks_at: 'the backup can be unpacked, holds what its manifest says, and each part has its SHA-256',
    means: 'The file is not a whole backup: nothing can be restored from it.',
    what_to_do:
      'Keep an older backup, make a new one, and find out where this one was damaged (disk, copying).',
  },
  secret: {
    looks_at: 'the secret is there and has 32 bytes',
    means: 'Every cursor, access token and photo address that was given out is refused.',
    what_to_do: 'Stop the appliance and put back the file secret from a backup.',
  },
  'detections.db': {
    looks_at:
      'SQLite finds every page, row and index of detections.db in order, of a schema that this program knows',
    means:
      'The file holds what SQLite did not write: the disk, or something else than the appliance, has changed it.',
    what_to_do: RESTORE,
  },
  'access.db': {
    looks_at: 'the same of access.db, and its rows refer to rows that are there',
    means: 'Keys and accounts may be missing or wrong.',
    what_to_do: RESTORE,
  },
  sequences: {
    looks_at: 'the rows of each stream are numbered without a gap, and its head is its last row',
    means: 'Rows of the change stream are missing or doubled: clients may have been passed over.',
    what_to_do: RESTORE,
  },
  deliveries: {
    looks_at: 'every row of the stream belongs to one delivery, and their times do not go backwards',
    means: '"since" may begin at a wrong place.',
    what_to_do: RESTORE,
  },
  detections: {
    looks_at: 'each detection is what the newest row of the stream says of it, and its versions only grow',
    means: 'What a client reads by period differs from what it was told by the stream.',
    what_to_do: RESTORE,
  },
  windows: {
    looks_at: 'the windows agree with the files that brought them to their status, and those with each other',
    means: 'as_of or data_gaps may say what is not so.',
    what_to_do: RESTORE,
  },
  journal: {
    looks_at: 'every line of the journal can be read, and it names the files that were applied',
    means: 'After a restore it would not be known what had happened since; versions would be raised.',
    what_to_do: 'Make a backup now. Check the disk; nothing else is needed for what is there.',
  },
  'journal mark': {
    looks_at: 'the journal is the one that the databases were written with, and reaches as far as they know',
    means:
      'A database or the journal was put in place of another one, or lost its end. The next start raises versions, so that clients keep nothing that is older.',
    what_to_do:
      'Put back the journal that belongs to the databases, if it is still somewhere, before the next start.',
  },
  archive: {
    looks_at:
      'the applied files that were not deleted lie in archive/; with --archive: with the SHA-256 they had',
    means:
      'They cannot be read again, neither by a replay nor after a restore. What is served is not touched.',
    what_to_do:
      'Put the files back from a copy of the drop folder, if there is one. Otherwise make a backup now.',
  },
} as const satisfies Record<string, CheckKind>;

export type CheckName = keyof typeof CHECKS;

export interface Finding {
  readonly check: CheckName;
  readonly detail: string;
  readonly means: string;
  readonly what_to_do: string;
}

/** Of one check; more than these are only counted. */
const DETAILS_MAX = 10;

/** Collects what the checks find. */
export class Findings {
  readonly #details = new Map<CheckName, { shown: string[]; more: number }>();
  readonly #notChecked = new Map<CheckName, string>();

  add(check: CheckName, detail: string): void {
    const found = this.#details.get(check) ?? { shown: [], more: 0 };
    this.#details.set(check, found);
    if (found.shown.length < DETAILS_MAX) found.shown.push(detail);
    else found.more += 1;
  }

  /** A check that something else keeps from being made. */
  skip(check: CheckName, reason: string): void {
    this.#notChecked.set(check, reason);
  }

  has(check: CheckName): boolean {
    return this.#details.has(check);
  }

  list(): Finding[] {
    return checkNames().flatMap((check) => {
      const { shown, more } = this.#details.get(check) ?? { shown: [], more: 0 };
      const details = more === 0 ? shown : [...shown, `and ${more.toLocaleString('en-US')} more`];
      const { means, what_to_do } = CHECKS[check];
      return details.map((detail) => ({ check, detail, means, what_to_do }));
    });
  }

  notChecked(): { check: CheckName; reason: string }[] {
    return [...this.#notChecked].map(([check, reason]) => ({ check, reason }));
  }
}

export function checkNames(): CheckName[] {
  return Object.keys(CHECKS).filter((name): name is CheckName => Object.hasOwn(CHECKS, name));
}
