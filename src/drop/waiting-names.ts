/** The names in the drop folder. A million of them fill no memory, and a stop does not wait for them. */
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExportName } from '../detection/content-type.ts';
import { compareFiles, type ExportFileName, type NameParser } from '../exports/file-name.ts';
import type { HeldBy } from '../windows/holding.ts';
import type { ResettableStatus } from '../windows/window-states.ts';
import { entriesIn, fileNamesIn, isOther, namesIn, OWN_FOLDERS } from './own-folder.ts';

/** So many export files, and as many others, are looked at in one scan: those that are read first. */
const SCANNED_FILES_MAX = 20_000;
/** So many names of other things are kept. */
const OTHERS_MAX = 1000;
/** How many names are read at once. Between two of these reads, a stop is noticed. */
const NAMES_AT_ONCE = 1000;

/** Whether a file in `.taken` has a record: it only waits to be moved on, or is being applied. */
export type IsRecorded = (number: number, name: string) => boolean;

/** Ingest number, and the name under which the file was dropped. */
export const TAKEN_NAME = /^(\d+)\.(.+)$/s;

/** The drop folder, and how the names in it are parsed. */
export interface DropNames {
  readonly root: string;
  readonly parse: NameParser;
}

interface Dropped {
  readonly name: string;
  /** In the drop folder. */
  readonly path: string;
}

/** An export file that waits. */
interface DroppedExport extends Pick<Dropped, 'path'> {
  readonly file: ExportFileName;
}

export interface HeldFile extends DroppedExport {
  readonly file: Extract<ExportFileName, { kind: 'window' }>;
  /** The status of its window. */
  readonly status: ResettableStatus;
}

/** What a scan must know of the files that it finds. */
export interface KnownFiles {
  readonly isRecorded: IsRecorded;
  readonly heldBy: HeldBy;
}

/**
 * @param check called now and then; it throws to end the search
 * @returns the files that are read first, all that are held (a window has as many names as there are forms of files),
 *   and the names of what is no file, as far as the folder tells
 * @throws the file system's error
 */
export async function waitingNames(
  { root, parse }: DropNames,
  { isRecorded, heldBy }: KnownFiles,
  check: () => void,
) {
  const held: HeldFile[] = [];
  const exports = firstOf<ExportFileName>(compareFiles);
  const refused = firstOf<string>((a, b) => (a < b ? -1 : 1));
  const others: string[] = [];
  let seen = 0;
  for await (const entry of await opendir(root, { bufferSize: NAMES_AT_ONCE })) {
    seen += 1;
    if (seen % NAMES_AT_ONCE === 0) check();
    const { name } = entry;
    if ((OWN_FOLDERS as readonly string[]).includes(name)) continue;
    const parsed = parse(name);
    if (parsed.kind === 'unfinished') continue;
    if (isOther(entry)) {
      if (others.length < OTHERS_MAX) others.push(name);
    } else if (parsed.kind === 'export') {
      const [heldFile] = heldOf([{ file: parsed.file, path: name }], heldBy);
      if (heldFile === undefined) exports.add(parsed.file);
      else held.push(heldFile);
    } else refused.add(name);
  }
  const names = [...exports.all().map((file) => file.name), ...refused.all()];
  const taken = takenFiles(namesIn(root, '.taken'), isRecorded);
  const heldTaken = heldOf(exportFilesOf(taken, parse), heldBy);
  const heldPaths = new Set(heldTaken.map(({ path }) => path));
  const files = [...droppedFiles(names), ...taken.filter(({ path }) => !heldPaths.has(path))];
  return { files, held: [...held, ...heldTaken], others };
}

/**
 * Export files in the drop folder, and those that were taken and have no record, in the order in which they are read.
 * @throws when the folder cannot be read
 */
export function exportFilesIn(
  { root, parse }: DropNames,
  isRecorded: IsRecorded = () => false,
): DroppedExport[] {
  const taken = entriesIn(root, '.taken').map(({ name }) => name);
  const files = [...droppedFiles(fileNamesIn(root, '')), ...takenFiles(taken, isRecorded)];
  return exportFilesOf(files, parse).sort((a, b) => compareFiles(a.file, b.file));
}

/** Those of the files that are held. */
export function heldOf(files: readonly DroppedExport[], heldBy: HeldBy): HeldFile[] {
  return files.flatMap(({ file, path }) => {
    const status = heldBy(file);
    return file.kind === 'window' && status !== null ? [{ file, path, status }] : [];
  });
}

function droppedFiles(names: readonly string[]): Dropped[] {
  return names.map((name) => ({ name, path: name }));
}

function takenFiles(names: readonly string[], isRecorded: IsRecorded): Dropped[] {
  return names.flatMap((taken) => {
    const [, number, name] = TAKEN_NAME.exec(taken) ?? [];
    if (name === undefined || isRecorded(Number(number), name)) return [];
    return { name, path: join('.taken', taken) };
  });
}

function exportFilesOf(files: readonly Dropped[], parse: NameParser): DroppedExport[] {
  return files.flatMap(({ name, path }) => {
    const parsed = parse(name);
    return parsed.kind === 'export' ? [{ file: parsed.file, path }] : [];
  });
}

/** Starts of the windows whose files lie in the drop folder, for whatever reason. @throws when it cannot be read */
export function waitingWindows(drop: DropNames, exportName: ExportName): ReadonlySet<number> {
  return new Set(
    exportFilesIn(drop).flatMap(({ file }) =>
      file.kind === 'window' && file.export === exportName ? file.window_start : [],
    ),
  );
}

/** The first {@link SCANNED_FILES_MAX} of any number of elements. */
function firstOf<T>(compare: (a: T, b: T) => number) {
  let elements: T[] = [];
  const all = () => elements.sort(compare).slice(0, SCANNED_FILES_MAX);
  const add = (element: T) => {
    if (elements.push(element) === 2 * SCANNED_FILES_MAX) elements = all();
  };
  return { add, all };
}
