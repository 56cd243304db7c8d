/**
 * The drop folder: which files wait in it, which are ready, and how a file is taken. Paths are relative to it. Events of the
 * file system only make a scan happen sooner: a network share gives none.
 */
import { fstatSync, fsyncSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FSWatcher } from 'chokidar';
import { compareFiles, nameParser, parseFileName } from '../exports/file-name.ts';
import { type ExportSource, type FileSnapshot, isSameSnapshot } from '../exports/unpacking.ts';
import { isErrorCode, misconfigured, reasonOf, unlessCode } from '../refused.ts';
import { type DataFolder, isThere, syncFolder, syncName } from '../store/folder.ts';
import { type Now, SECOND_MS } from '../time.ts';
import { unlessFileError } from './file-errors.ts';
import {
  ForeignFolder,
  inDrop,
  inFolder,
  isThereIn,
  makeOwnFolder,
  OWN_FOLDERS,
  openIn,
  removeIn,
  renameIn,
  syncIn,
  writeIn,
} from './own-folder.ts';
import { type DropSettings, type Readiness, readiness } from './readiness.ts';
import {
  type KnownFiles,
  type Named,
  type Place,
  SCANNED_FILES_MAX,
  takenFiles,
  waitingFiles,
} from './waiting-names.ts';

export type Waiting = Place & { readonly snapshot: FileSnapshot } & Exclude<Readiness, { kind: 'wait' }>;

type Found = Pick<Waiting, 'path' | 'snapshot'>;

export type Scan = ReturnType<DropFolder['scan']>;

type Remembered = { readonly snapshot: FileSnapshot; readonly sinceMs: number; isTruncated: boolean };

const NAME_BYTES_MAX = 180;

/** A command may lack the appliance's --drop. @throws Refused `configuration` if files were ingested, but none from here */
export function requireDropOf({ root, detections }: DataFolder, drop: string): void {
  if (!isThere(detections) || isThere(join(drop, 'archive'))) return;
  throw misconfigured(
    `${drop} is not the drop folder of ${root}: it has no archive/. If it is a share or a disk, mount it. Use --drop or the configuration to name the folder that wirewatch serve uses.`,
  );
}

export type DropFolder = ReturnType<typeof dropFolder>;

export function dropFolder(root: string, settings: DropSettings, monotonicMs: Now = () => performance.now()) {
  const parse = settings.file_names === undefined ? parseFileName : nameParser(settings.file_names);
  let remembered = new Map<string, Remembered>();
  let lastNumber: number | null = null;
  let watcher: FSWatcher | null = null;
  let isClosed = false;

  const takenPath = (number: number, name: string): string => join('.taken', `${number}.${shortName(name)}`);
  const skippedPath = (number: number): string => join('.taken', `skipped-${number}.ndjson`);
  const snapshotAt = (path: string) => snapshotIn(root, path);

  /** What is remembered of a file, if it has not changed since. */
  function memoryOf(path: string, snapshot: FileSnapshot): Remembered | undefined {
    const memory = remembered.get(path);
    return memory !== undefined && isSameSnapshot(memory.snapshot, snapshot) ? memory : undefined;
  }

  function isUnchanged({ path, snapshot }: Found): boolean {
    const now = snapshotAt(path);
    return typeof now !== 'string' && isSameSnapshot(now, snapshot);
  }

  const source = ({ path, snapshot }: Found): ExportSource => ({ path: join(root, path), found: snapshot });

  return {
    ...{ root, parse, takenPath, skippedPath, isUnchanged, source },
    snapshot: snapshotAt,
    /**
     * Makes Wirewatch's own folders. Those that cannot be used are left to the scan, which reports them: what others put
     * into the drop folder must not keep the appliance from starting.
     * @param mayBeMissing leaves a drop folder that cannot be made to the scan, too: its disk may not be mounted yet
     * @throws Refused if there is no drop folder, or a file in its place
     */
    prepare(mayBeMissing = false): void {
      try {
        // Not its parents: if a share is not mounted, exports would be written below its mount point. It may be a link.
        if (!isThere(root)) {
          mkdirSync(root);
          syncName(root);
        }
        inFolder(root, '', syncFolder);
      } catch (error) {
        const isWrong = error instanceof ForeignFolder || isErrorCode(error, 'ENOTDIR');
        if (mayBeMissing && !isWrong) return;
        throw misconfigured(
          `cannot use the drop folder ${root}: ${reasonOf(error)}. Check that its parent folder exists and is mounted, make it writable for this user, or name another folder with --drop.`,
        );
      }
      for (const name of OWN_FOLDERS)
        unlessFileError(undefined, () => {
          makeOwnFolder(root, name);
          syncIn(root, name);
        });
    },
    async watch(onChange: () => void, onError: (error: unknown) => void): Promise<void> {
      // Loaded here: a start need not wait for it.
      const { watch } = await import('chokidar');
      if (isClosed) return;
      // It would keep the state of every file, of which there may be a million: what the system reports is enough.
      watcher = watch(root, { depth: 0, ignoreInitial: true, ignored: (path) => path !== root });
      watcher.on('raw', onChange);
      watcher.on('error', onError);
    },
    async close(): Promise<void> {
      isClosed = true;
      await watcher?.close();
    },
    /**
     * @returns `ready`: files that can be processed now, in their order; `nextScanMs`: when the next one may become ready, from
     *   now, null: when something changes; `ignored`: names of folders, links and pipes, of files of Wirewatch's user or root
     *   with further names, and not in UTF-8; `held`: files that wait for an operator
     * @throws the file system's error when the folder cannot be read
     */
    scan(nowMs: number, known: KnownFiles) {
      // Without any of its folders, this may be the mount point of a share that is not mounted.
      if (isThereIn(root, 'archive')) makeOwnFolder(root, '.taken');
      const found = waitingFiles({ root, parse }, known, SCANNED_FILES_MAX);
      const { held, others: ignored } = found;
      inFolder(root, '.taken', () => {});
      const nowMonotonicMs = monotonicMs();
      const seenNow = new Map<string, Remembered>();
      const ready: Waiting[] = [];
      let nextScanMs = Number.POSITIVE_INFINITY;
      inFolder(root, '', (open) => {
        for (const dropped of [...found.exports, ...found.refused]) {
          const { name, path, takenAs } = dropped;
          // Those in `.taken` are few, and are named by way of that folder.
          const snapshot = path === name ? snapshotOf(join(open, name)) : snapshotAt(path);
          if (snapshot === 'ignored') ignored.push(name);
          if (typeof snapshot === 'string') continue;
          const fresh = { snapshot, sinceMs: nowMonotonicMs, isTruncated: false };
          const memory = memoryOf(path, snapshot) ?? fresh;
          seenNow.set(path, memory);
          const { sinceMs, isTruncated } = memory;
          const seen = { size: snapshot.size, unchangedMs: nowMonotonicMs - sinceMs, isTruncated };
          const is = readiness(dropped, seen, settings, nowMs);
          if (is.kind !== 'wait') ready.push({ name, path, takenAs, snapshot, ...is });
          else nextScanMs = Math.min(nextScanMs, is.waitMs);
        }
      });
      remembered = seenNow;
      ready.sort(compareWaiting);
      return { ready, held, ignored, nextScanMs: Number.isFinite(nextScanMs) ? nextScanMs : null };
    },
    /**
     * A file in the folder that is to be read now, as a scan would find it; null: it is gone, or may still be written.
     * Waits for `quiet_ms` if its time does not say that it is older: nothing else speaks against a writer at work.
     */
    async settled(dropped: Named & Place, snapshot: FileSnapshot, nowMs: number): Promise<Waiting | null> {
      const { name, path, takenAs } = dropped;
      const ageMs = Math.abs(Date.now() - Number(snapshot.mtimeNs / 1_000_000n));
      const unchangedMs = Math.max(ageMs, settings.quiet_ms);
      if (ageMs < settings.truncated_seconds * SECOND_MS) await sleep(settings.quiet_ms);
      if (!isUnchanged({ path, snapshot })) return null;
      const seen = { size: snapshot.size, unchangedMs, isTruncated: false };
      const is = readiness(dropped, seen, settings, nowMs);
      return is.kind === 'wait' ? null : { name, path, takenAs, snapshot, ...is };
    },
    noteTruncated({ path, snapshot }: Waiting): void {
      const memory = memoryOf(path, snapshot);
      if (memory !== undefined) memory.isTruncated = true;
    },
    /** An ingest number that no file has or had in this run. @param lastRecorded the highest one with a record */
    nextNumber(lastRecorded: number): number {
      lastNumber ??= takenFiles(root).reduce((last, { number }) => Math.max(last, number), 0);
      lastNumber = Math.max(lastNumber, lastRecorded) + 1;
      return lastNumber;
    },
    /**
     * Takes a file by renaming it within the folder's own file system, and makes sure that it is on the disk, with the notes
     * of its skipped rows.
     * @returns false if it changed since the scan: it stays where it is, or in `.taken`, and is scanned again
     */
    take(waiting: Waiting, number: number, notes = ''): boolean {
      const path = takenPath(number, waiting.name);
      try {
        // Before the rename: a file that this user cannot read stays where it is, and is tried again under its name.
        using file = openIn(root, waiting.path);
        const stats = fstatSync(file.fd, { bigint: true });
        if (!stats.isFile() || !isSameSnapshot(stats, waiting.snapshot)) return false;
        fsyncSync(file.fd);
        renameIn(root, waiting.path, path);
      } catch (error) {
        // It is gone, or a link or a socket.
        if (isErrorCode(error, 'ENOENT', 'ELOOP', 'ENXIO')) return false;
        throw error;
      }
      // What was noted of an earlier reading is no longer true.
      if (waiting.takenAs !== undefined)
        for (const old of [`${waiting.path}.reason.json`, skippedPath(waiting.takenAs)]) removeIn(root, old);
      syncIn(root, '.taken');
      if (!isUnchanged({ ...waiting, path })) return false;
      if (notes !== '') writeIn(root, skippedPath(number), notes);
      return true;
    },
    /** @throws Error ENOENT if no regular file is there */
    sourceAt(path: string): ExportSource {
      const snapshot = snapshotAt(path);
      if (typeof snapshot !== 'string') return source({ path, snapshot });
      throw Object.assign(new Error(`${join(root, path)} is not a file`), { code: 'ENOENT' });
    },
  };
}

/** `ignored`: not a file that is read. */
export function snapshotIn(root: string, path: string): FileSnapshot | 'gone' | 'ignored' {
  const look = (real: string) => snapshotOf(real, path.includes('/'));
  return unlessCode('gone', () => inDrop(root, path, look), 'ENOENT');
}

/** Why a name in the drop folder is left alone. */
export const IGNORED =
  'not a regular file with a UTF-8 name, or a hard link to a file of root or of Wirewatch';

/** With room for the prefixes and suffixes that we add. */
export function shortName(name: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name;
  const beginning = Buffer.from(name).subarray(0, NAME_BYTES_MAX).toString('utf8');
  return beginning.replace(/\ufffd+$/, '');
}

function compareWaiting(a: Waiting, b: Waiting): number {
  if (a.kind === 'export' && b.kind === 'export') return compareFiles(a.file, b.file);
  if (a.kind !== b.kind) return a.kind === 'export' ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

/**
 * A dropped file that has other names may be one that its writer may not read: of Wirewatch, or of root, linked to here.
 * @param path for system calls. @param isPutAway it is in a folder into which only Wirewatch writes, such as `archive`
 */
function snapshotOf(path: string, isPutAway = false): FileSnapshot | 'gone' | 'ignored' {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  // Also a name that is not UTF-8, and so not a path.
  if (stats === undefined) return path.includes('\ufffd') ? 'ignored' : 'gone';
  const isLinked =
    !isPutAway && stats.nlink > 1n && (stats.uid === 0n || Number(stats.uid) === process.geteuid?.());
  if (!stats.isFile() || isLinked) return 'ignored';
  const { size, mtimeNs, ino, dev } = stats;
  return { size, mtimeNs, ino, dev };
}
