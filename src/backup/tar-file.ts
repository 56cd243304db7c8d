/**
 * Packing and unpacking a backup's tar: the one door to the library.
 *
 * What is unpacked is trusted with nothing: its entries must be the ones that a backup has, in their order, plain
 * files, no longer than announced; each is written under a name of our own.
 */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, createReadStream, fsyncSync, openSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { create, Parser, type ReadEntry } from 'tar';
import { Refused } from '../refused.ts';
import {
  isPartName,
  MANIFEST,
  MANIFEST_BYTES_MAX,
  type Manifest,
  PARTS,
  type PartName,
  parseManifest,
} from './backup-file.ts';

const READ_BYTES = 1024 * 1024;

/** Packs files of a folder, in this order, into a new file that only this user can read; on disk afterwards. */
export async function packTar(
  folder: string,
  names: readonly string[],
  target: string,
  onBytes: (done: number) => void,
): Promise<number> {
  const file = await open(target, 'wx', 0o600);
  let bytes = 0;
  try {
    const packed = create({ cwd: folder, portable: true, strict: true, maxReadSize: READ_BYTES }, [...names]);
    for await (const chunk of packed) {
      await file.writeFile(chunk);
      bytes += chunk.length;
      onBytes(bytes);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return bytes;
}

/**
 * Unpacks a backup into a folder; also one that was compressed with gzip afterwards.
 *
 * @throws Refused `failed` where it is not what a backup is; the text follows the file's name
 */
export async function unpackTar(
  path: string,
  folder: string,
  onBytes: (done: number) => void,
): Promise<Manifest> {
  const unpacking = new Unpacking(folder);
  const parser = new Parser({ strict: true, onReadEntry: (entry) => unpacking.begin(entry) });
  const ended = new Promise<void>((resolve, reject) => {
    parser.on('error', reject);
    parser.on('end', resolve);
  });
  ended.catch(() => {});
  const input = createReadStream(path, { highWaterMark: READ_BYTES });
  let bytes = 0;
  try {
    for await (const chunk of input) {
      if (!Buffer.isBuffer(chunk)) throw new Error('a file gives bytes');
      bytes += chunk.length;
      // Entries are written as they are parsed; only unpacking a compressed one takes a while.
      if (!parser.write(chunk)) await Promise.race([drained(parser), ended]);
      unpacking.check();
      onBytes(bytes);
    }
    parser.end();
    await ended;
    return unpacking.finish();
  } catch (error) {
    if (error instanceof Error && 'tarCode' in error)
      throw new Refused('failed', `it is damaged, cut off or no tar file (${error.message})`, {
        cause: error,
      });
    throw error;
  } finally {
    unpacking.close();
    input.destroy();
    await finished(input).catch(() => {});
  }
}

function drained(parser: Parser): Promise<void> {
  return new Promise((resolve) => parser.once('drain', resolve));
}

interface OpenEntry {
  readonly name: string;
  readonly file: number;
  readonly hash: Hash;
  readonly bytesMax: number;
  bytes: number;
}

/** The entries of one archive, one after the other. */
class Unpacking {
  readonly #folder: string;
  #manifest: Manifest | null = null;
  #manifestText = '';
  #expected: string[] = [MANIFEST];
  #open: OpenEntry | null = null;
  #failure: unknown = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What goes wrong within the parser's callbacks is kept for {@link check}: it would be lost there. */
  begin(entry: ReadEntry): void {
    if (this.#failure === null) this.#guard(() => this.#begin(entry));
    if (this.#failure !== null) entry.resume();
  }

  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  finish(): Manifest {
    this.check();
    const [missing] = this.#expected;
    if (this.#manifest === null || missing !== undefined)
      throw new Refused('failed', `it is no backup, or not whole: ${missing ?? MANIFEST} is not in it`);
    return this.#manifest;
  }

  close(): void {
    if (this.#open !== null) closeSync(this.#open.file);
    this.#open = null;
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #begin(entry: ReadEntry): void {
    const [name] = this.#expected;
    if (entry.type !== 'File' || entry.path !== name) {
      const wanted = name === undefined ? 'nothing more' : `the file ${name}`;
      throw new Refused(
        'failed',
        `it is no backup: expected ${wanted}, found ${JSON.stringify(entry.path)} (${entry.type})`,
      );
    }
    this.#expected.shift();
    const bytesMax = name === MANIFEST ? MANIFEST_BYTES_MAX : this.#announced(name);
    const open = {
      name,
      file: openSync(join(this.#folder, name), 'wx', 0o600),
      hash: createHash('sha256'),
      bytesMax,
      bytes: 0,
    };
    this.#open = open;
    entry.on('data', (chunk) => {
      if (this.#failure === null) this.#guard(() => this.#write(open, Buffer.from(chunk)));
    });
    entry.on('end', () => {
      if (this.#failure === null) this.#guard(() => this.#end(open));
    });
  }

  #write(entry: OpenEntry, chunk: Buffer): void {
    entry.bytes += chunk.length;
    if (entry.bytes > entry.bytesMax)
      throw new Refused('failed', `its ${entry.name} is longer than its manifest says`);
    entry.hash.update(chunk);
    for (let at = 0; at < chunk.length; ) at += writeSync(entry.file, chunk, at);
    if (entry.name === MANIFEST) this.#manifestText += chunk.toString('utf8');
  }

  #end(entry: OpenEntry): void {
    fsyncSync(entry.file);
    this.close();
    if (entry.name === MANIFEST) {
      const manifest = parseManifest(this.#manifestText);
      this.#manifest = manifest;
      this.#expected = PARTS.filter((part) => manifest.parts[part] !== undefined);
      return;
    }
    const part = isPartName(entry.name) ? this.#manifest?.parts[entry.name] : undefined;
    const isSame = part?.bytes === entry.bytes && part.sha256 === entry.hash.digest('hex');
    if (!isSame)
      throw new Refused('failed', `its ${entry.name} is damaged: its SHA-256 is not the manifest's`);
  }

  #announced(name: string): number {
    const part: PartName | null = isPartName(name) ? name : null;
    return (part === null ? undefined : this.#manifest?.parts[part]?.bytes) ?? 0;
  }
}
