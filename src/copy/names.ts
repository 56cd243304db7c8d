/**
 * The names of the objects of a copy (pure).
 *
 * | name | content |
 * |---|---|
 * | `installation.json`, `secret` | whose copy it is |
 * | `access/CHANGE.db.zst` | `access.db` after its change of that number |
 * | `log/GENERATION/FIRST.zst` | a part: whole entries of the log, from the entry FIRST on; its name is the claim to that number |
 * | `log/GENERATION/LAST-FIRST.zst` | all of the parts from FIRST to LAST in one: by then they may be deleted |
 * | `large/GENERATION/RANDOM-NUMBER.zst` | a piece of an entry that is too large for one part |
 *
 * Numbers have a fixed width, so that names are in the order of their entries, and an object that covers an entry has a
 * name beyond that of the entry.
 */
const ENTRY_DIGITS = 16;
const GENERATION_DIGITS = 4;
const LOG_NAME = /^log\/(\d{4})\/(\d{16})(?:-(\d{16}))?\.zst$/;
const ACCESS_NAME = /^access\/(\d{16})\.db\.zst$/;

export const INSTALLATION = 'installation.json';
export const SECRET = 'secret';
export const LOG = 'log/';
export const LARGE = 'large/';
export const ACCESS = 'access/';

/** An object with entries of the log. */
export interface LogObject {
  readonly name: string;
  readonly generation: number;
  /** Its first entry. */
  readonly first: number;
  /** Its last entry; null: it is a part, and only its content says. */
  readonly last: number | null;
}

export function generationFolder(of: typeof LOG | typeof LARGE, generation: number): string {
  return `${of}${padded(generation, GENERATION_DIGITS)}/`;
}

export function partName(generation: number, first: number): string {
  return `${beforeEntry(generation, first)}.zst`;
}

export function mergedName(generation: number, first: number, last: number): string {
  return `${beforeEntry(generation, last)}-${padded(first, ENTRY_DIGITS)}.zst`;
}

/** What all names come after that have an entry or a later one. */
export function beforeEntry(generation: number, entry: number): string {
  return generationFolder(LOG, generation) + padded(entry, ENTRY_DIGITS);
}

/** @returns null for a name of another kind */
export function parseLogName(name: string): LogObject | null {
  const [, generation, number, first] = LOG_NAME.exec(name) ?? [];
  if (generation === undefined || number === undefined) return null;
  return {
    name,
    generation: Number(generation),
    first: Number(first ?? number),
    last: first === undefined ? null : Number(number),
  };
}

export function accessName(change: number): string {
  return `${ACCESS}${padded(change, ENTRY_DIGITS)}.db.zst`;
}

/** @returns the number of the change; null for a name of another kind */
export function parseAccessName(name: string): number | null {
  const [, change] = ACCESS_NAME.exec(name) ?? [];
  return change === undefined ? null : Number(change);
}

/**
 * The objects that have the entries of a generation, each entry once, in order: parts that a merged object covers are left
 * out, which its writer may not have deleted yet.
 */
export function inOrder(names: readonly string[]): LogObject[] {
  const all = names.flatMap((name) => parseLogName(name) ?? []);
  const merged = all.filter(({ last }) => last !== null);
  const isCovered = ({ first }: LogObject) =>
    merged.some((one) => one.first <= first && first <= (one.last ?? 0));
  return all
    .filter((one) => one.last !== null || !isCovered(one))
    .sort((one, other) => one.first - other.first);
}

function padded(number: number, digits: number): string {
  return String(number).padStart(digits, '0');
}
