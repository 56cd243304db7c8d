/** The names in the drop folder. A million of them fill no memory. */
import { type Dir, opendirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExportName } from '../detection/content-type.ts';
import { compareFiles, type ExportFileName, type NameParser, type ParsedName } from '../exports/file-name.ts';
import { reasonOf } from '../refused.ts';
import type { HeldBy } from '../windows/ledger.ts';
import type { ResettableStatus } from '../windows/window-states.ts';
import { entriesIn, isOther, OWN_FOLDERS } from './own-folder.ts';

/** So many export files, and as many others, are looked at in one scan: those that are read first. */
export const SCANNED_FILES_MAX = 20_000;
/** So many names of other things are kept. */
const OTHERS_MAX = 1000;
const NAMES_AT_ONCE = 1000;

/** The files in `.taken`: the ingest number of each, and the name under which it was dropped. After a crash, one may have no record. */
export function takenFiles(root: string): { number: number; name: string; path: string }[] {
  return entriesIn(root, '.taken').flatMap((entry) => {
    const [, number, name] = /^(\d+)\.(.+)$/s.exec(entry.name) ?? [];
    return name === undefined ? [] : { number: Number(number), name, path: join('.taken', entry.name) };
  });
}

export type DropNames = Readonly<{ root: string; parse: NameParser }>;

/** What a name says of a file that is not being written. */
export type Named = Exclude<ParsedName, { kind: 'unfinished' }>;
/** `name`: under which it was dropped; `path`: where it is now; `takenAs`: the ingest number with which it was taken before. */
export type Place = Readonly<{ name: string; path: string; takenAs?: number | undefined }>;
type Dropped<Kind extends Named['kind']> = Extract<Named, { kind: Kind }> & Place;
/** `status`: of its window. */
export type HeldFile = Dropped<'export'> & {
  readonly file: ExportFileName & { readonly window_start: number };
  readonly status: ResettableStatus;
};

/** What must be known of the files in the folder. */
export interface KnownFiles {
  /** Whether a file in `.taken` has a record: it only waits to be moved on, or is being applied. */
  readonly isRecorded: (number: number, name: string) => boolean;
  readonly heldBy: HeldBy;
}

const NOTHING_KNOWN: KnownFiles = { isRecorded: () => false, heldBy: () => null };

/**
 * The files in the drop folder, and those that were taken and have no record.
 * @param filesMax of how many export files, and as many others, those that are read first are returned
 * @returns `exports` in the order in which they are read, `exports_count` of how many; `refused`: other files; `held`, in
 *   the order of their windows; `others`: the names of what is no file, as far as the folder tells
 * @throws the file system's error if the folder cannot be read
 */
export function waitingFiles(
  { root, parse }: DropNames,
  { isRecorded, heldBy }: KnownFiles = NOTHING_KNOWN,
  filesMax = Number.POSITIVE_INFINITY,
) {
  const exports = firstOf(compareExports, filesMax);
  const refused = firstOf<Dropped<'refused'>>((a, b) => (a.name < b.name ? -1 : 1), filesMax);
  const held: HeldFile[] = [];
  const others: string[] = [];
  const add = (name: string, path: string, takenAs?: number) => {
    const parsed = parse(name);
    if (parsed.kind === 'refused') refused.add({ ...parsed, name, path, takenAs });
    if (parsed.kind !== 'export') return;
    const { kind, file } = parsed;
    const status = heldBy(file);
    const { window_start } = file;
    if (window_start === null || status === null) exports.add({ kind, file, name, path, takenAs });
    else held.push({ kind, file: { ...file, window_start }, name, path, takenAs, status });
  };
  using folder: Dir & Disposable = opendirSync(root, { bufferSize: NAMES_AT_ONCE });
  for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
    const { name } = entry;
    if ((OWN_FOLDERS as readonly string[]).includes(name)) continue;
    if (!isOther(entry)) add(name, name);
    else if (others.length < OTHERS_MAX && parse(name).kind !== 'unfinished') others.push(name);
  }
  for (const { number, name, path } of takenFiles(root))
    if (!isRecorded(number, name)) add(name, path, number);
  held.sort(compareExports);
  return { exports: exports.all(), exports_count: exports.count(), refused: refused.all(), held, others };
}

/** What is said of the drop folder `root`, which hangs. */
export const unanswering = (root: string) =>
  `the drop folder ${root} does not answer: check its disk or share`;

/** Why the drop folder cannot be listed, and what to do, in words; null: it can. */
export function unlistable(root: string): string | null {
  try {
    opendirSync(root).closeSync();
    return null;
  } catch (error) {
    const reason = reasonOf(error, root);
    return `the drop folder ${root} cannot be read: ${reason}. Check that its disk or share is mounted, and that the user that Wirewatch runs as may read it`;
  }
}

/** Starts of the windows whose files lie in the drop folder, for whatever reason. @throws when it cannot be read */
export function waitingWindows(drop: DropNames, exportName: ExportName): ReadonlySet<number> {
  const files = waitingFiles(drop).exports.filter(({ file }) => file.export === exportName);
  return new Set(files.flatMap(({ file }) => file.window_start ?? []));
}

const compareExports = (a: Dropped<'export'>, b: Dropped<'export'>): number => compareFiles(a.file, b.file);

/** The first `max` of any number of elements. */
function firstOf<T>(compare: (a: T, b: T) => number, max: number) {
  let elements: T[] = [];
  let count = 0;
  const all = () => elements.sort(compare).slice(0, max);
  const add = (element: T) => {
    count += 1;
    if (elements.push(element) === 2 * max) elements = all();
  };
  return { add, all, count: () => count };
}
