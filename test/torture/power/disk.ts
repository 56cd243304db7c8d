/**
 * A disk as POSIX promises it, no more: what of a file was written is there after its fsync, a name after the fsync of
 * its folder. Of everything else a power cut leaves any part, but for two promises of every file system: a rename is
 * done or not done, and one name goes through its changes in their order.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { IoEvent, Truncated, Written } from '../io/record.ts';

type Change = Written | Truncated;
const NOTHING = Buffer.alloc(0);
export type Node = DiskFile | DiskFolder;

export class DiskFile {
  /** Of the file system that was recorded. */
  readonly inode: number;
  modifiedNs = 0n;
  /** What was done to it since its last fsync. */
  pending: Change[] = [];
  /** Longer than the file: it mostly grows. Behind its end are zeros. */
  #room: Buffer;
  #size: number;

  constructor(inode: number, durable: Buffer) {
    this.inode = inode;
    this.#room = Buffer.from(durable);
    this.#size = durable.length;
  }

  get durable(): Buffer {
    return this.#room.subarray(0, this.#size);
  }

  /** What programs see of it. */
  get current(): Buffer {
    return this.with(this.pending);
  }

  /** What is durable, and some changes. */
  with(changes: readonly Change[]): Buffer {
    if (changes.length === 0) return this.durable;
    const content = Buffer.alloc(roomFor(this.#size, changes));
    this.durable.copy(content);
    return content.subarray(0, apply(content, this.#size, changes));
  }

  sync(): void {
    const room = roomFor(this.#size, this.pending);
    if (room > this.#room.length) {
      const longer = Buffer.alloc(2 * room);
      this.durable.copy(longer);
      this.#room = longer;
    }
    this.#size = apply(this.#room, this.#size, this.pending);
    this.modifiedNs = this.pending.at(-1)?.modifiedNs ?? this.modifiedNs;
    this.pending = [];
  }
}

function roomFor(size: number, changes: readonly Change[]): number {
  return changes.reduce(
    (most, change) => Math.max(most, 'size' in change ? change.size : change.at + change.data.length),
    size,
  );
}

/** @param size of what is in the room; @returns the size that it has then */
function apply(room: Buffer, size: number, changes: readonly Change[]): number {
  let end = size;
  for (const change of changes) {
    if ('size' in change) {
      if (change.size < end) room.fill(0, change.size, end);
      end = change.size;
    } else {
      change.data.copy(room, change.at);
      end = Math.max(end, change.at + change.data.length);
    }
  }
  return end;
}

export class DiskFolder {
  readonly durable = new Map<string, Node>();
  readonly current = new Map<string, Node>();
}

/** One change of names, which is done whole or not at all. */
export interface NameChange {
  readonly entries: readonly {
    readonly folder: DiskFolder;
    readonly name: string;
    readonly node: Node | null;
  }[];
}

export class Disk {
  readonly root: string;
  readonly top = new DiskFolder();
  /** Names that were changed since their folders were synced, in order. */
  pending: NameChange[] = [];
  /** Files that were changed since they were synced. */
  readonly unsynced = new Set<DiskFile>();
  readonly #files = new Map<number, DiskFile>();

  /** @param root a folder that is empty when the record is begun; otherwise {@link load} it then */
  constructor(root: string) {
    this.root = root;
  }

  /** Takes what is in the folder now to be durable. */
  load(): void {
    this.#load(this.root, this.top);
  }

  /** Takes an event of the record; those that change nothing are passed over. */
  play(event: IoEvent): void {
    switch (event.kind) {
      case 'write':
      case 'truncate': {
        const file = this.#file(event.inode, event.path);
        file.pending.push(event.change);
        this.unsynced.add(file);
        break;
      }
      case 'sync': {
        const file = this.#file(event.inode, event.path);
        file.sync();
        this.unsynced.delete(file);
        break;
      }
      case 'sync folder': {
        const folder = this.#find(event.path);
        this.#settle(({ entries }) => entries.some((entry) => entry.folder === folder));
        break;
      }
      default: {
        const change = { entries: this.#renamed(event) };
        if (change.entries.length === 0) break;
        for (const { folder, name, node } of change.entries) setName(folder.current, name, node);
        this.pending.push(change);
        if (event.kind === 'put') this.#settle((each) => each === change);
      }
    }
  }

  #load(path: string, into: DiskFolder): void {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const below = join(path, entry.name);
      const node = entry.isDirectory() ? new DiskFolder() : this.#loadFile(below);
      if (node instanceof DiskFolder) this.#load(below, node);
      setName(into.durable, entry.name, node);
      setName(into.current, entry.name, node);
    }
  }

  /** A file may have several names. */
  #loadFile(path: string): DiskFile {
    const { ino, mtimeNs } = lstatSync(path, { bigint: true });
    const file = this.#files.get(Number(ino)) ?? new DiskFile(Number(ino), readFileSync(path));
    file.modifiedNs = mtimeNs;
    this.#files.set(file.inode, file);
    return file;
  }

  /** The names that an event gives or takes. */
  #renamed(event: IoEvent): NameChange['entries'] {
    switch (event.kind) {
      case 'create':
      case 'put': {
        const file = new DiskFile(event.inode, event.kind === 'put' ? event.content : NOTHING);
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

  /** Makes changes durable, and before each the earlier ones of the same names. */
  #settle(isMeant: (change: NameChange) => boolean): void {
    const meant = withEarlier(this.pending, isMeant);
    for (const change of this.pending)
      if (meant.has(change))
        for (const { folder, name, node } of change.entries) setName(folder.durable, name, node);
    this.pending = this.pending.filter((change) => !meant.has(change));
  }

  #file(inode: number, path: string): DiskFile {
    const file = this.#files.get(inode);
    if (file === undefined) throw new Error(`${path} was written, but nothing recorded that it was made`);
    return file;
  }

  #place(path: string): { folder: DiskFolder; name: string } {
    const folder = this.#find(dirname(path));
    if (!(folder instanceof DiskFolder)) throw new Error(`${path} is in no folder that is known`);
    return { folder, name: basename(path) };
  }

  #find(path: string): Node {
    if (path === this.root) return this.top;
    const folder = this.#find(dirname(path));
    const node = folder instanceof DiskFolder ? folder.current.get(basename(path)) : undefined;
    if (node === undefined) throw new Error(`${path} is there, but nothing recorded that it was made`);
    return node;
  }
}

export function setName(names: Map<string, Node>, name: string, node: Node | null): void {
  if (node === null) names.delete(name);
  else names.set(name, node);
}

/** The changes that are meant, and all before them that touch one of their names. */
export function withEarlier(
  changes: readonly NameChange[],
  isMeant: (change: NameChange, index: number) => boolean,
): Set<NameChange> {
  const meant = new Set<NameChange>();
  const names = new Map<DiskFolder, Set<string>>();
  for (const [index, change] of [...changes.entries()].reverse()) {
    const isBefore = change.entries.some(({ folder, name }) => names.get(folder)?.has(name) === true);
    if (!isBefore && !isMeant(change, index)) continue;
    meant.add(change);
    for (const { folder, name } of change.entries)
      names.set(folder, (names.get(folder) ?? new Set()).add(name));
  }
  return meant;
}

/** Paths at which the real folder is not what the record comes to: then a call was missed. */
export function differences(disk: Disk): string[] {
  const found: string[] = [];
  const compare = (folder: DiskFolder, path: string) => {
    const names = new Set([...folder.current.keys(), ...readdirSync(path)]);
    for (const name of names) {
      const below = join(path, name);
      const node = folder.current.get(name);
      const stats = lstatSync(below, { throwIfNoEntry: false });
      // What SQLite maps into memory is written without a call, and means nothing after a power cut.
      if (name.endsWith('-shm')) continue;
      if (node === undefined || stats === undefined) found.push(below);
      else if (node instanceof DiskFolder) compare(node, below);
      else if (!node.current.equals(readFileSync(below))) found.push(below);
    }
  };
  compare(disk.top, disk.root);
  return found;
}
