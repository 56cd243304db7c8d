/**
 * The names of the objects of a copy (pure).
 *
 * | name | content |
 * |---|---|
 * | `installation.json`, `secret` | whose copy it is |
 * | `access/CHANGE.db.zst` | `access.db` after its change of that number |
 * | `log/GENERATION/FIRST.zst` | a part: whole entries of the log, from the entry FIRST on; its name is the claim to that number |
 * | `log/GENERATION/LAST-FIRST.zst` | all of the parts from FIRST to LAST in one: by then they may be deleted |
 * | `large/GENERATION/FIRST-RANDOM.zst` | a piece of the entries from FIRST on, which are too large for one part |
 *
 * A generation is a number, and for later ones than the first the random id of whoever wrote it: two machines that begin one at
 * once do not mix. Numbers have a fixed width, so that names are in the order of their entries, and an object that covers an entry has a
 * name beyond that of the entry.
 */
const LOG_NAME = /^log\/(\d{4}(?:-[0-9a-f]{8})?)\/(\d{16})(?:-(\d{16}))?\.zst$/;
const ACCESS_NAME = /^access\/(\d{16})\.db\.zst$/;

/** The generation that a copy begins with. */
export const FIRST_GENERATION = '0001';
/** The form of a generation's name. */
export const GENERATION = '^[0-9]{4}-[0-9a-f]{8}$';

export const INSTALLATION = 'installation.json';
export const SECRET = 'secret';
export const LOG = 'log/';
export const LARGE = 'large/';
export const ACCESS = 'access/';

/** An object with entries of the log. */
export interface LogObject {
  readonly name: string;
  readonly generation: string;
  /** Its first entry. */
  readonly first: number;
  /** Its last entry; null: it is a part, and only its content says. */
  readonly last: number | null;
}

export function generationFolder(folder: typeof LOG | typeof LARGE, generation: string): string {
  return `${folder}${generation}/`;
}

/** @param id 8 random hexadecimal digits */
export function generationAfter(names: readonly string[], id: string): string {
  const numbers = names.map((name) => generationNumber(parseLogName(name)?.generation ?? FIRST_GENERATION));
  return `${String(Math.max(...numbers) + 1).padStart(4, '0')}-${id}`;
}

/** Whether an object is of an older generation, or of one of the same number that did not come. */
export function isBefore(name: string, generation: string): boolean {
  const [, own = ''] = name.split('/');
  return own !== generation && generationNumber(own) <= generationNumber(generation);
}

function generationNumber(generation: string): number {
  return Number.parseInt(generation, 10);
}

export function partName(generation: string, first: number): string {
  return `${beforeEntry(generation, first)}.zst`;
}

export function mergedName(generation: string, first: number, last: number): string {
  return `${beforeEntry(generation, last)}-${padded(first)}.zst`;
}

/** @param random '' for what the names of all pieces come after that have the entry or a later one */
export function pieceName(generation: string, first: number, random = ''): string {
  return `${generationFolder(LARGE, generation)}${padded(first)}${random && `-${random}.zst`}`;
}

/** What all names come after that have an entry or a later one. */
export function beforeEntry(generation: string, entry: number): string {
  return generationFolder(LOG, generation) + padded(entry);
}

/** @returns null for a name of another kind */
export function parseLogName(name: string): LogObject | null {
  const [, generation, number, first] = LOG_NAME.exec(name) ?? [];
  if (generation === undefined || number === undefined) return null;
  return {
    name,
    generation,
    first: Number(first ?? number),
    last: first === undefined ? null : Number(number),
  };
}

export function accessName(change: number): string {
  return `${ACCESS}${padded(change)}.db.zst`;
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
    merged.some((object) => object.first <= first && first <= (object.last ?? 0));
  return all.filter((object) => object.last !== null || !isCovered(object)).sort((a, b) => a.first - b.first);
}

function padded(number: number): string {
  return String(number).padStart(16, '0');
}
