/**
 * A disk with the guarantees of POSIX and no others: content survives a power cut after fsync of the file, a name after
 * fsync of its folder. Any part of the other changes may survive, with two guarantees of every file system: a rename is
 * atomic, and changes of the same name keep their order.
 */
import { linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import type { IoEvent } from '../io/record.ts';

/** Of a file's content: a write, or the size that it is truncated to. */
type Change = { readonly at: number; readonly data: Buffer } | { readonly size: number };
const NOTHING = Buffer.alloc(0);
type Node = DiskFile | DiskFolder;

class DiskFile {
  durable: Buffer;
  /** Changes since the last fsync. */
  pending: Change[] = [];

  constructor(durable: Buffer) {
    this.durable = durable;
  }

  /** The content that programs read. */
  get current(): Buffer {
    return this.with(this.pending);
  }

  /** The durable content with some changes applied. */
  with(changes: readonly Change[]): Buffer {
    if (changes.length === 0) return this.durable;
    const room = changes.reduce((most, change) => Math.max(most, endOf(change)), this.durable.length);
    const content = Buffer.alloc(room);
    let size = this.durable.copy(content);
    for (const change of changes) {
      if ('data' in change) change.data.copy(content, change.at);
      else content.fill(0, Math.min(change.size, size), size);
      size = 'data' in change ? Math.max(size, endOf(change)) : change.size;
    }
    return content.subarray(0, size);
  }

  sync(): void {
    this.durable = this.current;
    this.pending = [];
  }
}

const endOf = (change: Change): number => ('data' in change ? change.at + change.data.length : change.size);

class DiskFolder {
  readonly durable = new Map<string, Node>();
  readonly current = new Map<string, Node>();
}

/** An atomic change of names. */
interface NameChange {
  readonly entries: readonly {
    readonly folder: DiskFolder;
    readonly name: string;
    readonly node: Node | null;
  }[];
}

export class Disk {
  readonly root: string;
  readonly top = new DiskFolder();
  /** Unsynced changes of names, in order. */
  pending: NameChange[] = [];
  /** By their inode in the recorded file system. */
  readonly #files = new Map<number, DiskFile>();

  /** @param root the recorded folder; if it is not empty at the start of the record, call {@link load} */
  constructor(root: string) {
    this.root = root;
  }

  get hasUnsyncedContent(): boolean {
    return [...this.#files.values()].some(({ pending }) => pending.length > 0);
  }

  /** Reads the folder's current content, as durable. */
  load(path = this.root, into = this.top): void {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const below = join(path, entry.name);
      const node = entry.isDirectory() ? new DiskFolder() : this.#loadFile(below);
      if (node instanceof DiskFolder) this.load(below, node);
      setName(into.durable, entry.name, node);
      setName(into.current, entry.name, node);
    }
  }

  /** A file may have several names. */
  #loadFile(path: string): DiskFile {
    const { ino } = lstatSync(path);
    const file = this.#files.get(ino) ?? new DiskFile(readFileSync(path));
    this.#files.set(ino, file);
    return file;
  }

  /** Applies an event of the record; events that change nothing are ignored. */
  play(event: IoEvent): void {
    switch (event.kind) {
      case 'write':
        this.#file(event).pending.push(event);
        break;
      case 'truncate':
        this.#file(event).pending.push({ size: event.at });
        break;
      case 'sync':
        this.#file(event).sync();
        break;
      case 'sync folder': {
        const folder = this.#find(event.path);
        this.#makeDurable(({ entries }) => entries.some((entry) => entry.folder === folder));
        break;
      }
      default: {
        const change = { entries: this.#nameChanges(event) };
        if (change.entries.length === 0) break;
        for (const { folder, name, node } of change.entries) setName(folder.current, name, node);
        this.pending.push(change);
        if (event.kind === 'put') this.#makeDurable((each) => each === change);
      }
    }
  }

  /** The names that an event adds or removes. */
  #nameChanges(event: IoEvent): NameChange['entries'] {
    switch (event.kind) {
      case 'create':
      case 'put': {
        const file = new DiskFile(event.data);
        this.#files.set(event.inode, file);
        return [{ ...this.#place(event.path), node: file }];
      }
      case 'make folder':
        return [{ ...this.#place(event.path), node: new DiskFolder() }];
      case 'rename':
        return [
          { ...this.#place(event.path), node: null },
          { ...this.#place(event.other), node: this.#find(event.path) },
        ];
      case 'link':
        return [{ ...this.#place(event.other), node: this.#find(event.path) }];
      case 'unlink':
      case 'remove folder':
        return [{ ...this.#place(event.path), node: null }];
      default:
        return [];
    }
  }

  /** Makes the selected changes durable, with all earlier changes of the same names. */
  #makeDurable(isSelected: (change: NameChange) => boolean): void {
    const selected = withEarlier(this.pending, isSelected);
    for (const change of this.pending)
      if (selected.has(change))
        for (const { folder, name, node } of change.entries) setName(folder.durable, name, node);
    this.pending = this.pending.filter((change) => !selected.has(change));
  }

  #file({ inode, path }: IoEvent): DiskFile {
    const file = this.#files.get(inode);
    if (file === undefined) throw new Error(`${path} was written, but its creation was not recorded`);
    return file;
  }

  #place(path: string): { folder: DiskFolder; name: string } {
    const folder = this.#find(dirname(path));
    if (!(folder instanceof DiskFolder)) throw new Error(`the folder of ${path} is unknown`);
    return { folder, name: basename(path) };
  }

  #find(path: string): Node {
    if (path === this.root) return this.top;
    const folder = this.#find(dirname(path));
    const node = folder instanceof DiskFolder ? folder.current.get(basename(path)) : undefined;
    if (node === undefined) throw new Error(`${path} exists, but its creation was not recorded`);
    return node;
  }
}

function setName(names: Map<string, Node>, name: string, node: Node | null): void {
  if (node === null) names.delete(name);
  else names.set(name, node);
}

/** The selected changes, and all earlier ones of the same names. */
function withEarlier(
  changes: readonly NameChange[],
  isSelected: (change: NameChange, index: number) => boolean,
): Set<NameChange> {
  const selected = new Set<NameChange>();
  const names = new Map<DiskFolder, Set<string>>();
  for (const [index, change] of [...changes.entries()].reverse()) {
    const isBefore = change.entries.some(({ folder, name }) => names.get(folder)?.has(name) === true);
    if (!isBefore && !isSelected(change, index)) continue;
    selected.add(change);
    for (const { folder, name } of change.entries)
      names.set(folder, (names.get(folder) ?? new Set()).add(name));
  }
  return selected;
}

/** Paths where the real folder differs from the record: a call was not recorded. */
export function differences(disk: Disk): string[] {
  const found: string[] = [];
  const compare = (folder: DiskFolder, path: string) => {
    const names = new Set([...folder.current.keys(), ...readdirSync(path)]);
    for (const name of names) {
      const below = join(path, name);
      const node = folder.current.get(name);
      const stats = lstatSync(below, { throwIfNoEntry: false });
      // SQLite writes -shm files through a memory map, without calls, and discards them after a power cut.
      if (name.endsWith('-shm')) continue;
      if (node === undefined || stats === undefined) found.push(below);
      else if (node instanceof DiskFolder) compare(node, below);
      else if (!node.current.equals(readFileSync(below))) found.push(below);
    }
  };
  compare(disk.top, disk.root);
  return found;
}

/** Which part of the unsynced data survives: of the files' content, and of their names. */
export const SURVIVALS = ['nothing', 'everything', 'the beginning', 'some'] as const;
type Survival = (typeof SURVIVALS)[number];

/** What a disk writes atomically, in bytes: a write is torn between two of them. Infinity: none is. */
const SECTORS = [512, 4096, Number.POSITIVE_INFINITY] as const;
/** The probability that a change survives; picked for each file, and once for all names. */
const PROBABILITIES = [0.05, 0.3, 0.5, 0.7, 0.95] as const;

/** @returns which of so many changes survive, by their numbers */
function survivorsOf(left: Survival, count: number, prng: Prng): (index: number) => boolean {
  const end = prng.below(count + 1);
  const probability = prng.pick(PROBABILITIES);
  return (index) => {
    if (left === 'nothing' || left === 'everything') return left === 'everything';
    return left === 'the beginning' ? index < end : prng.chance(probability);
  };
}

/** Replaces a folder's content by a disk as a power cut may leave it. @returns what survived */
export function writeImage(disk: Disk, prng: Prng, root: string) {
  const survivors = { content: prng.pick(SURVIVALS), names: prng.pick(SURVIVALS) };
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root);
  const folders = survivingFolders(disk, survivors.names, prng);
  const written = new Map<DiskFile, string>();
  const write = (folder: DiskFolder, path: string) => {
    for (const [name, node] of folders.get(folder) ?? folder.durable) {
      const below = join(path, name);
      if (node instanceof DiskFolder) {
        mkdirSync(below, { mode: 0o700 });
        write(node, below);
      } else if (written.has(node)) linkSync(written.get(node) ?? '', below);
      else {
        written.set(node, below);
        writeFileSync(below, survivingContent(node, survivors.content, prng), { mode: 0o600 });
      }
    }
  };
  write(disk.top, root);
  return survivors;
}

function survivingFolders({ pending }: Disk, names: Survival, prng: Prng) {
  const isLeft = survivorsOf(names, pending.length, prng);
  const kept = withEarlier(pending, (_, index) => isLeft(index));
  const folders = new Map<DiskFolder, Map<string, Node>>();
  for (const change of pending) {
    if (!kept.has(change)) continue;
    for (const { folder, name, node } of change.entries) {
      const entries = folders.get(folder) ?? new Map(folder.durable);
      setName(entries, name, node);
      folders.set(folder, entries);
    }
  }
  return folders;
}

function survivingContent(file: DiskFile, left: Survival, prng: Prng): Buffer {
  const { durable, pending } = file;
  if (pending.length === 0) return durable;
  const isLeft = survivorsOf(left, pending.length, prng);
  const sector = prng.pick(SECTORS);
  // A file's new length may be durable before its content.
  const isLengthThere = left === 'some' && prng.chance(0.2);
  const kept = pending.flatMap((change, index): Change[] => {
    const pieces = piecesOf(change, sector).filter(() => isLeft(index));
    const isLonger = isLengthThere && 'data' in change && endOf(change) > durable.length;
    return isLonger ? [{ at: endOf(change), data: NOTHING }, ...pieces] : pieces;
  });
  return file.with(kept);
}

/** Splits a write into sectors. */
function piecesOf(change: Change, sector: number): Change[] {
  if ('size' in change) return [change];
  const { at, data } = change;
  const pieces: Change[] = [];
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + sector - ((at + from) % sector));
    pieces.push({ at: at + from, data: data.subarray(from, to) });
    from = to;
  }
  return pieces;
}
