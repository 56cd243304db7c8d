/**
 * The drop folder: what waits in it, what has come to rest, and how a file is taken.
 *
 * The scan is the truth; events of the file system only make it happen sooner, because a network share gives
 * none. A file is ready when two looks, `quiet_ms` apart, saw it the same; times that the file carries are not
 * trusted for that, since copying tools set them.
 */
import { type BigIntStats, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';
import type { FSWatcher } from 'chokidar';
import { isErrorCode, Refused, reasonOf } from '../../refused.ts';
import { type DataFolder, isThere, syncFile, syncFolder, syncName } from '../../store/folder.ts';
import { SECOND_MS, WINDOW_MS } from '../../time.ts';
import { compareFiles, type ExportFileName, judgeName, judgeWindow } from '../format/file-name.ts';

/** The appliance's own folders in it. `.taken` holds the file that is being dealt with. */
export const OWN_FOLDERS = ['archive', 'failed', 'refused', 'held', '.taken'] as const;

export interface DropSettings {
  readonly quiet_ms: number;
  readonly truncated_seconds: number;
}

export type Waiting = {
  /** The name it was dropped under. */
  readonly name: string;
  readonly path: string;
  readonly look: Look;
  /** The number of the record under which the file lay in `held/` or `failed/`: an operator wants it read. */
  readonly replaces?: number;
} & (
  | {
      readonly kind: 'export';
      readonly file: ExportFileName;
      /** It has had its time: cut off is cut off. */
      readonly isFinal: boolean;
    }
  | { readonly kind: 'refused'; readonly reason: string }
);

export interface Scan {
  /** Files that can be dealt with now, in their order. */
  readonly ready: readonly Waiting[];
  /** When another look is worth while, milliseconds from now; null: when something changes. */
  readonly nextLookMs: number | null;
  /** Entries that are no files of ours to touch: folders, links, pipes, names that cannot be read. */
  readonly leftAlone: readonly string[];
  /** Export files in the folder that are not ready. */
  readonly notReady: number;
}

/** What a file looked like; any write changes it. */
export interface Look {
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ino: bigint;
  readonly dev: bigint;
}

interface Remembered {
  look: Look;
  sinceMs: number;
  /** It was read like this, and its packing was cut off. */
  truncated: boolean;
}

const NAME_BYTES_MAX = 180;

export class DropFolder {
  readonly root: string;
  readonly #settings: DropSettings;
  readonly #monotonicMs: () => number;
  #remembered = new Map<string, Remembered>();
  #watcher: FSWatcher | null = null;
  #isClosed = false;

  constructor(root: string, settings: DropSettings, monotonicMs: () => number = () => performance.now()) {
    this.root = root;
    this.#settings = settings;
    this.#monotonicMs = monotonicMs;
  }

  /** Makes the appliance's own folders, and refuses to follow one of them elsewhere. */
  prepare(): void {
    try {
      // Not its parents: where a share is not mounted, exports would go astray below its mount point.
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
   * For a command, which mostly was not told where the appliance's drop folder is.
   *
   * @throws Refused `configuration` where files were taken in, and none of them can have been taken out of here
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

  /** Calls back when something in the folder changes. Without events the rescan alone finds files. */
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

  /**
   * @param isRecorded whether a file in `.taken` has a record: it only waits to be moved on, or is being applied
   * @throws the file system's error when the folder cannot be read
   */
  scan(nowMs: number, isRecorded: (number: number) => boolean): Scan {
    const monotonicMs = this.#monotonicMs();
    const remembered = new Map<string, Remembered>();
    const ready: Waiting[] = [];
    const leftAlone: string[] = [];
    let nextLookMs = Number.POSITIVE_INFINITY;
    let notReady = 0;
    for (const entry of this.#entries(isRecorded)) {
      if (entry.kind === 'left alone') {
        leftAlone.push(entry.name);
        continue;
      }
      const known = this.#remembered.get(entry.path);
      const memory =
        known !== undefined && isSameLook(known.look, entry.look)
          ? known
          : { look: entry.look, sinceMs: monotonicMs, truncated: false };
      remembered.set(entry.path, memory);
      const judged = this.#judge(entry, memory, monotonicMs - memory.sinceMs, nowMs);
      if (judged.kind === 'ready') ready.push(judged.waiting);
      else {
        notReady += 1;
        nextLookMs = Math.min(nextLookMs, judged.waitMs);
      }
    }
    this.#remembered = remembered;
    ready.sort(compareWaiting);
    return { ready, notReady, leftAlone, nextLookMs: Number.isFinite(nextLookMs) ? nextLookMs : null };
  }

  /** Remembers that a file, as it looked, was cut off: it is given time to grow. */
  noteTruncated(waiting: Waiting): void {
    const memory = this.#remembered.get(waiting.path);
    if (memory !== undefined && isSameLook(memory.look, waiting.look)) memory.truncated = true;
  }

  /** The numbers under which files lie in `.taken`, lowest first: a crash can leave one that no record names. */
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

  /** Removes the rows that a reading had left out which was given up. @param kept files that have a record */
  removeSkipped(kept: ReadonlySet<number>): void {
    for (const name of readdirSync(join(this.root, '.taken'))) {
      const number = /^skipped-(\d+)\.ndjson$/.exec(name)?.[1];
      if (number !== undefined && !kept.has(Number(number))) rmSync(this.skippedPath(Number(number)));
    }
  }

  /**
   * Takes a file by renaming it within the folder's own file system, and makes sure that it is on the disk.
   *
   * @returns whether it is still the file that was looked at; if not, it stays where it is, or in `.taken`, and
   *   is looked at anew
   */
  take(waiting: Waiting, number: number): boolean {
    const path = this.takenPath(number, waiting.name);
    try {
      if (!isSameLook(this.look(waiting.path), waiting.look)) return false;
      renameSync(waiting.path, path);
    } catch (error) {
      if (isErrorCode(error, 'ENOENT')) return false;
      throw error;
    }
    // The note beside a file that failed or was held says what is no longer so.
    if (waiting.replaces !== undefined) rmSync(`${waiting.path}.reason.json`, { force: true });
    syncFile(path);
    syncFolder(join(this.root, '.taken'));
    return isSameLook(this.look(path), waiting.look);
  }

  look(path: string): Look {
    return lookOf(lstatSync(path, { bigint: true }));
  }

  *#entries(isRecorded: (number: number) => boolean): Generator<Entry> {
    for (const name of readdirSync(this.root)) {
      if (name.startsWith('.') || (OWN_FOLDERS as readonly string[]).includes(name)) continue;
      yield* this.#entry(name, join(this.root, name));
    }
    for (const taken of readdirSync(join(this.root, '.taken'))) {
      const path = join(this.root, '.taken', taken);
      const [, number, name] = TAKEN_NAME.exec(taken) ?? [];
      if (name !== undefined && !isRecorded(Number(number))) yield* this.#entry(name, path);
    }
  }

  *#entry(name: string, path: string): Generator<Entry> {
    if (judgeName(name).kind === 'unfinished') return;
    try {
      const stats = lstatSync(path, { bigint: true });
      if (stats.isFile()) yield { kind: 'file', name, path, look: lookOf(stats) };
      else yield { kind: 'left alone', name };
    } catch (error) {
      // Gone since, or a name that is no UTF-8 and so cannot be spelled.
      if (!isErrorCode(error, 'ENOENT')) throw error;
      if (name.includes('\ufffd')) yield { kind: 'left alone', name };
    }
  }

  #judge(
    entry: FileEntry,
    memory: Remembered,
    unchangedMs: number,
    nowMs: number,
  ): { kind: 'ready'; waiting: Waiting } | { kind: 'wait'; waitMs: number } {
    const { name, path, look } = entry;
    if (unchangedMs < this.#settings.quiet_ms)
      return { kind: 'wait', waitMs: this.#settings.quiet_ms - unchangedMs };
    const judged = judgeName(name);
    if (judged.kind !== 'export') {
      const reason = judged.kind === 'refused' ? judged.reason : '';
      return { kind: 'ready', waiting: { kind: 'refused', name, path, look, reason } };
    }
    const { file } = judged;
    if (file.kind === 'window') {
      const due = judgeWindow(file.window_start, nowMs);
      if (due === 'too far ahead') {
        const reason =
          'the window is more than a day in the future. The name must contain the start of the window in UTC; also check the clocks of the writer and of this machine';
        return { kind: 'ready', waiting: { kind: 'refused', name, path, look, reason } };
      }
      if (due === 'early') return { kind: 'wait', waitMs: file.window_start + WINDOW_MS - nowMs };
    }
    // Nothing tells an empty file that is meant from one that is about to be written, but time.
    const needsTime = memory.truncated || (look.size === 0n && !/\.(gz|zst)$/.test(file.form));
    const restMs = this.#settings.truncated_seconds * SECOND_MS - unchangedMs;
    if (needsTime && restMs > 0) return { kind: 'wait', waitMs: restMs };
    return { kind: 'ready', waiting: { kind: 'export', name, path, look, file, isFinal: restMs <= 0 } };
  }

  #isOwn(path: string): boolean {
    return OWN_FOLDERS.some((name) => path === join(this.root, name));
  }
}

/** Ingest number, and the name under which the file was dropped. */
const TAKEN_NAME = /^(\d+)\.(.+)$/s;

type FileEntry = { readonly kind: 'file'; readonly name: string; readonly path: string; readonly look: Look };
type Entry = FileEntry | { readonly kind: 'left alone'; readonly name: string };

/** Makes the folder, and its name durable, where its parent is there; it may be a link. */
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

/** A file system's limit on names must hold with what is put before and behind. */
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

function isSameLook(a: Look, b: Look): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.ino === b.ino && a.dev === b.dev;
}

function lookOf({ size, mtimeNs, ino, dev }: BigIntStats): Look {
  return { size, mtimeNs, ino, dev };
}
