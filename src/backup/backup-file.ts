/**
 * What a backup file consists of: one tar, the manifest first, so that it says what it is before anything is
 * unpacked. Anything with another name, a link or a folder in it makes it no backup.
 */
import { Refused } from '../refused.ts';

export const MANIFEST = 'manifest.json';
/** In this order: the journal is copied last, so that it is never older than the databases. */
export const PARTS = ['detections.db', 'access.db', 'journal', 'secret'] as const;
export type PartName = (typeof PARTS)[number];

export const FORMAT = 'wirewatch-backup';
export const FORMAT_VERSION = 1;
export const MANIFEST_BYTES_MAX = 64 * 1024;

export interface Part {
  readonly bytes: number;
  readonly sha256: string;
}

export interface Manifest {
  readonly format: typeof FORMAT;
  readonly version: number;
  /** When it was begun; the databases are no older than this. */
  readonly created_at: string;
  /** The version of the program that wrote it. */
  readonly program: string;
  readonly schemas: { readonly detections: number; readonly access: number };
  /** Which journal it was, and how much of it there was; null where there was none. */
  readonly journal: { readonly id: string | null; readonly bytes: number } | null;
  readonly counts: {
    readonly detections: number;
    readonly stream_rows: number;
    readonly files: number;
    readonly accounts: number;
    readonly keys: number;
  };
  /** Every part that is in it; an installation that never took a file in may have no journal. */
  readonly parts: Readonly<Partial<Record<PartName, Part>>>;
}

export function isPartName(name: string): name is PartName {
  return PARTS.some((part) => part === name);
}

/** @throws Refused `failed` when it is no manifest, or one of a newer program */
export function parseManifest(text: string): Manifest {
  const wrong = (what: string) => new Refused('failed', `its ${MANIFEST} ${what}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong('is no JSON');
  }
  if (member(value, 'format') !== FORMAT) throw wrong(`does not say that it is a ${FORMAT}`);
  const version = member(value, 'version');
  if (typeof version !== 'number') throw wrong('has no version');
  if (version > FORMAT_VERSION) {
    throw wrong(
      `has version ${version}, this program knows ${FORMAT_VERSION}. It was written by a newer program: use that one`,
    );
  }
  const parts: Partial<Record<PartName, Part>> = {};
  for (const name of PARTS) {
    const part = member(member(value, 'parts'), name);
    if (part === undefined && name === 'journal') continue;
    parts[name] = { bytes: count(part, 'bytes'), sha256: text64(part, 'sha256') };
  }
  const journal = member(value, 'journal');
  const id = member(journal, 'id');
  return {
    format: FORMAT,
    version,
    created_at: String(member(value, 'created_at')),
    program: String(member(value, 'program')),
    schemas: {
      detections: count(member(value, 'schemas'), 'detections'),
      access: count(member(value, 'schemas'), 'access'),
    },
    journal:
      journal === null ? null : { id: typeof id === 'string' ? id : null, bytes: count(journal, 'bytes') },
    counts: {
      detections: count(member(value, 'counts'), 'detections'),
      stream_rows: count(member(value, 'counts'), 'stream_rows'),
      files: count(member(value, 'counts'), 'files'),
      accounts: count(member(value, 'counts'), 'accounts'),
      keys: count(member(value, 'counts'), 'keys'),
    },
    parts,
  };

  function count(of: unknown, name: string): number {
    const found = member(of, name);
    if (typeof found === 'number' && Number.isSafeInteger(found) && found >= 0) return found;
    throw wrong(`has no ${name}`);
  }

  function text64(of: unknown, name: string): string {
    const found = member(of, name);
    if (typeof found === 'string' && /^[0-9a-f]{64}$/.test(found)) return found;
    throw wrong(`has no ${name}`);
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
