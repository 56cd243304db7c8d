/**
 * The drop folder: which files wait in it, which are ready (readiness.ts), and how a file is taken.
 *
 * The scan counts. Events of the file system only make it happen sooner: a network share gives none.
 */
import { type BigIntStats, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import type { FSWatcher } from 'chokidar';
import type { ExportName } from '../../detection/content-type.ts';
import { isErrorCode, Refused, reasonOf } from '../../refused.ts';
import { type DataFolder, isThere, syncFile, syncFolder, syncName } from '../../store/folder.ts';
import { compareFiles, type ExportFileName, parseFileName } from '../format/file-name.ts';
import {
  type DropSettings,
  type FileSnapshot,
  isSameSnapshot,
  type Readiness,
  readiness,
} from './readiness.ts';

/** Wirewatch's own folders in it. `.taken` holds the file that is being processed. */
export const OWN_FOLDERS = ['archive', 'failed', 'refused', 'held', '.taken'] as const;

export type Waiting = {
  /** The name it was dropped under. */
  readonly name: string;
  readonly path: string;
  readonly snapshot: FileSnapshot;
  /** The file lies in `held/` or `failed/`, and an operator has it read again. */
  readonly isReadAgain?: true;
} & Exclude<Readiness, { kind: 'wait' }>;

export interface Scan {
  /** Files that can be processed now, in their order. */
  readonly ready: readonly Waiting[];
  /** When the next file may become ready, milliseconds from now; null: when something changes. */
  readonly nextScanMs: number | null;
  /** Names of folders, links and pipes, and names that are not UTF-8. */
  readonly ignored: readonly string[];
  /** Export files in the folder that are not ready. */
  readonly notReady: number;
}

interface Remembered {
  readonly snapshot: FileSnapshot;
  readonly sinceMs: number;
  isTruncated: boolean;
}

const NAME_BYTES_MAX = 180;

/** Whether a file in `.taken` has a record: it only waits to be moved on, or is being applied. */
export type IsRecorded = (number: number, name: string) => boolean;

export class DropFolder {
  readonly root: string;
  readonly #settings: DropSettings;
  readonly #monotonicMs: () => number;
  #remembered = new Map<string, Remembered>();
  #lastNumber: number | null = null;
  #watcher: FSWatcher | null = null;
  #isClosed = false;

  constructor(root: string, settings: DropSettings, monotonicMs: () => number = () => performance.now()) {
    this.root = root;
    this.#settings = settings;
    this.#monotonicMs = monotonicMs;
  }

  /** Makes Wirewatch's own folders. @throws Refused if one cannot be used, or is a link */
  prepare(): void {
    try {
      // Not its parents: if a share is not mounted, exports would be written below its mount point.
      makeFolder(this.root);
      for (const name of OWN_FOLDERS) this.ensureFolder(name);
      // A process that was killed may have made folders without syncing their names.
      syncName(this.root);
      for (const name of ['', ...OWN_FOLDERS]) syncFolder(join(this.root, name));
    } catch (error) {
      const reason = reasonOf(error);
      throw new Refused(
        'configuration',
        `cannot use the drop folder ${this.root}: ${reason}. Check that its parent folder exists and is mounted, make it writable for this user, or name another folder with --drop.`,
      );
    }
  }

  /**
   * For a command, which may have been started without the appliance's --drop.
   *
   * @throws Refused `configuration` if files were ingested, but none from this folder
   */
  requireOf({ root, detections }: DataFolder): void {
    if (!isThere(detections) || isThere(join(this.root, 'archive'))) return;
    throw new Refused(
      'configuration',
      `${this.root} is not the drop folder of ${root}: it has no archive/. Use --drop or the configuration to name the folder that wirewatch serve uses.`,
    );
  }

  /** @param path of one of our own folders, or one below, from the root on; @throws as {@link ensureRealFolder} */
  ensureFolder(path: string): void {
    const parts = path.split(sep);
    for (let depth = 1; depth <= parts.length; depth += 1) {
      ensureRealFolder(join(this.root, ...parts.slice(0, depth)));
    }
  }

  /** Calls back when something in the folder changes. Without events, only the periodic scan finds files. */
  async watch(onChange: () => void, onError: (error: unknown) => void): Promise<void> {
    // Loaded here: a start need not wait for it.
    const { watch } = await import('chokidar');
    if (this.#isClosed) return;
    this.#watcher = watch(this.root, { depth: 0, ignoreInitial: true, ignored: (path) => this.#isOwn(path) });
    this.#watcher.on('all', onChange);
    this.#watcher.on('error', onError);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watcher?.close();
  }

  /** @throws the file system's error when the folder cannot be read */
  scan(nowMs: number, isRecorded: IsRecorded): Scan {
    const monotonicMs = this.#monotonicMs();
    const remembered = new Map<string, Remembered>();
    const ready: Waiting[] = [];
    const ignored: string[] = [];
    let nextScanMs = Number.POSITIVE_INFINITY;
    let notReady = 0;
    for (const entry of this.#entries(isRecorded)) {
      if (entry.kind === 'ignored') {
        ignored.push(entry.name);
        continue;
      }
      const { name, path, snapshot } = entry;
      const known = this.#remembered.get(path);
      const memory =
        known !== undefined && isSameSnapshot(known.snapshot, snapshot)
          ? known
          : { snapshot, sinceMs: monotonicMs, isTruncated: false };
      remembered.set(path, memory);
      const unchangedMs = monotonicMs - memory.sinceMs;
      const seen = { name, size: snapshot.size, unchangedMs, isTruncated: memory.isTruncated };
      const is = readiness(seen, this.#settings, nowMs);
      if (is.kind !== 'wait') ready.push({ name, path, snapshot, ...is });
      else {
        notReady += 1;
        nextScanMs = Math.min(nextScanMs, is.waitMs);
      }
    }
    this.#remembered = remembered;
    ready.sort(compareWaiting);
    return { ready, notReady, ignored, nextScanMs: Number.isFinite(nextScanMs) ? nextScanMs : null };
  }

  /** Whether an export file waits under a name, ready or not. @throws as {@link scan} */
  hasWaiting(name: string, isRecorded: IsRecorded): boolean {
    const taken = readdirSync(join(this.root, '.taken'));
    return exportFilesOf(readdirSync(this.root), taken, isRecorded).some((file) => file.name === name);
  }

  /** Gives a file whose compressed data is cut off time to grow. */
  noteTruncated({ path, snapshot }: Waiting): void {
    const memory = this.#remembered.get(path);
    if (memory !== undefined && isSameSnapshot(memory.snapshot, snapshot)) memory.isTruncated = true;
  }

  /** An ingest number that no file has or had in this run. @param lastRecorded the highest one with a record */
  nextNumber(lastRecorded: number): number {
    this.#lastNumber ??= this.takenNumbers().at(-1) ?? 0;
    this.#lastNumber = Math.max(this.#lastNumber, lastRecorded) + 1;
    return this.#lastNumber;
  }

  /** The numbers of the files in `.taken`, lowest first: after a crash, one may have no record. */
  takenNumbers(): number[] {
    return readdirSync(join(this.root, '.taken'))
      .flatMap((name) => TAKEN_NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b);
  }

  takenPath(number: number, name: string): string {
    return join(this.root, '.taken', `${number}.${shortName(name)}`);
  }

  skippedPath(number: number): string {
    return join(this.root, '.taken', `skipped-${number}.ndjson`);
  }

  /** Removes the skipped rows of interrupted readings. @param kept files that have a record */
  removeSkipped(kept: ReadonlySet<number>): void {
    for (const name of readdirSync(join(this.root, '.taken'))) {
      const number = /^skipped-(\d+)\.ndjson$/.exec(name)?.[1];
      if (number !== undefined && !kept.has(Number(number))) rmSync(this.skippedPath(Number(number)));
    }
  }

  /**
   * Takes a file by renaming it within the folder's own file system, and makes sure that it is on the disk.
   *
   * @returns false if it changed since the scan: it stays where it is, or in `.taken`, and is scanned again
   */
  take(waiting: Waiting, number: number): boolean {
    const path = this.takenPath(number, waiting.name);
    try {
      if (!isSameSnapshot(this.snapshot(waiting.path), waiting.snapshot)) return false;
      // Before the rename: a file that this user cannot read stays where it is, and is tried again under its name.
      syncFile(waiting.path);
      renameSync(waiting.path, path);
    } catch (error) {
      if (isErrorCode(error, 'ENOENT')) return false;
      throw error;
    }
    // The note beside a failed or held file is no longer true.
    if (waiting.isReadAgain) rmSync(`${waiting.path}.reason.json`, { force: true });
    syncFolder(join(this.root, '.taken'));
    return isSameSnapshot(this.snapshot(path), waiting.snapshot);
  }

  snapshot(path: string): FileSnapshot {
    return snapshotOf(lstatSync(path, { bigint: true }));
  }

  *#entries(isRecorded: IsRecorded): Generator<Entry> {
    for (const name of readdirSync(this.root)) {
      if (name.startsWith('.') || (OWN_FOLDERS as readonly string[]).includes(name)) continue;
      yield* this.#entry(name, join(this.root, name));
    }
    for (const taken of readdirSync(join(this.root, '.taken'))) {
      const path = join(this.root, '.taken', taken);
      const [, number, name] = TAKEN_NAME.exec(taken) ?? [];
      if (name !== undefined && !isRecorded(Number(number), name)) yield* this.#entry(name, path);
    }
  }

  *#entry(name: string, path: string): Generator<Entry> {
    if (parseFileName(name).kind === 'unfinished') return;
    try {
      const stats = lstatSync(path, { bigint: true });
      if (stats.isFile()) yield { kind: 'file', name, path, snapshot: snapshotOf(stats) };
      else yield { kind: 'ignored', name };
    } catch (error) {
      // Gone since, or its name is not UTF-8 and so not a path.
      if (!isErrorCode(error, 'ENOENT')) throw error;
      if (name.includes('\ufffd')) yield { kind: 'ignored', name };
    }
  }

  #isOwn(path: string): boolean {
    return OWN_FOLDERS.some((name) => path === join(this.root, name));
  }
}

/** Export files by name, in the order in which they are read. @param taken names in `.taken`, without those recorded */
export function exportFilesOf(
  names: readonly string[],
  taken: readonly string[],
  isRecorded: IsRecorded = () => false,
): ExportFileName[] {
  const dropped = taken.flatMap((name) => {
    const [, number, original = ''] = TAKEN_NAME.exec(name) ?? [];
    return number === undefined || isRecorded(Number(number), original) ? [] : [original];
  });
  const files = [...names, ...dropped].flatMap((name) => {
    const parsed = parseFileName(name);
    return parsed.kind === 'export' ? [parsed.file] : [];
  });
  return files.sort(compareFiles);
}

/** Starts of the windows whose files lie in the drop folder, for whatever reason. @throws when it cannot be read */
export function waitingWindows(root: string, exportName: ExportName): ReadonlySet<number> {
  const files = exportFilesOf(readdirSync(root), readdirSync(join(root, '.taken')));
  return new Set(
    files.flatMap((file) => (file.kind === 'window' && file.export === exportName ? file.window_start : [])),
  );
}

/** Ingest number, and the name under which the file was dropped. */
const TAKEN_NAME = /^(\d+)\.(.+)$/s;

type Entry =
  | { readonly kind: 'file'; readonly name: string; readonly path: string; readonly snapshot: FileSnapshot }
  | { readonly kind: 'ignored'; readonly name: string };

/** Makes the folder and its name durable. Its parent must exist; the folder may be a link. */
function makeFolder(root: string): void {
  try {
    mkdirSync(root);
    syncName(root);
  } catch (error) {
    if (!isErrorCode(error, 'EEXIST')) throw error;
  }
}

/** A folder of our own must be one: a link would lead out of the drop folder. @throws Error ENOTDIR */
export function requireRealFolder(path: string): void {
  if (lstatSync(path).isDirectory()) return;
  const message = `${path} is not a folder: expected a real folder, not a link. Move it away`;
  throw Object.assign(new Error(message), { code: 'ENOTDIR' });
}

/** @throws as {@link requireRealFolder}; the file system's error when it cannot be made */
function ensureRealFolder(path: string): void {
  makeFolder(path);
  requireRealFolder(path);
}

/** Leaves room for the prefixes and suffixes that we add, within the file system's limit. */
export function shortName(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  return Buffer.from(name)
    .subarray(0, NAME_BYTES_MAX)
    .toString('utf8')
    .replace(/\ufffd+$/, '');
}

function compareWaiting(a: Waiting, b: Waiting): number {
  if (a.kind === 'export' && b.kind === 'export') return compareFiles(a.file, b.file);
  if (a.kind !== b.kind) return a.kind === 'export' ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function snapshotOf({ size, mtimeNs, ino, dev }: BigIntStats): FileSnapshot {
  return { size, mtimeNs, ino, dev };
}
