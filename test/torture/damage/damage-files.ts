/** Damages files in different ways, each at a random place. */
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import type { Prng } from '../../../src/tools/generate/prng.ts';

/** Files by their paths. */
export type Files = ReadonlyMap<string, Buffer>;

const BLOCK_BYTES = 64;
const PAGE_BYTES = 4096;

export const DAMAGE_KINDS = ['bit', 'block', 'page', 'torn end', 'lost', 'doubled', 'swapped'] as const;
export type DamageKind = (typeof DAMAGE_KINDS)[number];

/** @returns the damaged files; they may equal the original ones by chance */
export function damaged(
  files: Files,
  kind: DamageKind,
  { prng, paths }: { readonly prng: Prng; readonly paths: readonly string[] },
): Files {
  // An empty file, such as a lock, has nothing to damage.
  const path = prng.pick(paths.filter((one) => files.get(one)?.length !== 0));
  const bytes = Buffer.from(files.get(path) ?? '');
  const result = new Map(files);
  const set = (content: Buffer) => result.set(path, content);
  switch (kind) {
    case 'bit': {
      const at = prng.below(bytes.length);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << prng.below(8)), at);
      return set(bytes);
    }
    case 'block': {
      const at = prng.below(Math.max(1, bytes.length - BLOCK_BYTES));
      return set(
        overwritten(bytes, at, Buffer.from(Array.from({ length: BLOCK_BYTES }, () => prng.below(256)))),
      );
    }
    case 'page': {
      // Another page of the same file, as if the disk wrote to the wrong place; or zeros.
      const pages = Math.ceil(bytes.length / PAGE_BYTES);
      const [to, from] = [prng.below(pages) * PAGE_BYTES, prng.below(pages) * PAGE_BYTES];
      const page = prng.chance(0.5) ? Buffer.alloc(PAGE_BYTES) : bytes.subarray(from, from + PAGE_BYTES);
      return set(overwritten(bytes, to, Buffer.from(page)));
    }
    case 'torn end':
      return set(bytes.subarray(0, prng.below(bytes.length)));
    case 'lost':
      result.delete(path);
      return result;
    case 'doubled':
      if (prng.chance(0.5)) return set(Buffer.concat([bytes, bytes]));
      return result.set(join(dirname(path), nextName(basename(path), prng)), bytes);
    case 'swapped': {
      const other = prng.pick(paths);
      result.set(path, files.get(other) ?? bytes);
      return result.set(other, bytes);
    }
  }
}

function overwritten(bytes: Buffer, at: number, piece: Buffer): Buffer {
  return Buffer.concat([
    bytes.subarray(0, at),
    piece.subarray(0, bytes.length - at),
    bytes.subarray(at + piece.length),
  ]);
}

/** A name for a double: where names are numbers, one of the next three. */
function nextName(name: string, prng: Prng): string {
  const [digits] = /^\d+/.exec(name) ?? [];
  return digits === undefined
    ? `${name}.${randomBytes(2).toString('hex')}`
    : `${`${Number(digits) + 1 + prng.below(3)}`.padStart(digits.length, '0')}${name.slice(digits.length)}`;
}

export const isSame = (a: Files, b: Files): boolean =>
  a.size === b.size && [...a].every(([path, bytes]) => b.get(path)?.equals(bytes) === true);
