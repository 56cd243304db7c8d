/** What this machine is to the copy: what the configuration says, until a promotion, which the data folder notes. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { misconfigured, Refused, unlessCode, unlessError } from '../refused.ts';
import { createOnce, type DataFolder, isThere, syncFolder, writeWhole } from './folder.ts';
import type { LogMark } from './log-mark.ts';

export const ROLES = ['writer', 'standby', 'superseded'] as const;
export type Role = (typeof ROLES)[number];

/** How the copy stands, for status: of a writer what the copy lacks, of a standby what it lacks of the copy. */
export interface CopyState {
  readonly to: string;
  /** Entries of the log that are missing; null: not known. */
  readonly entries_behind: number | null;
  /** Since when something is missing; null: nothing is. */
  readonly behind_since: string | null;
  /** When the place last answered; null: not since the start. */
  readonly contact_at: string | null;
  /** Why it cannot be written or read now; null: it can. */
  readonly failure: string | null;
}

/** The kind of the log's entry by which a machine becomes the writer. */
export const PROMOTE = 'promote';
/** That of the entry by which a restore begins a version epoch. It names the host, for people. */
export const RESTORE = 'restore';

const RoleNote = Type.Object({
  /** Random, of this data folder on this machine. */
  machine: Type.String(),
  /** Whether it was promoted: then it writes, whatever the configuration says. */
  promoted: Type.Boolean(),
  /** The version epoch that must begin before it ingests, since the old writer's end may be lost; null: none. */
  epoch_due: Type.Union([Type.Integer(), Type.Null()]),
  /** Whether it began its last run as a standby. */
  standby: Type.Optional(Type.Boolean()),
  /** Who took its place, in words; null: nobody. */
  superseded: Type.Union([Type.String(), Type.Null()]),
});
export type RoleNote = Static<typeof RoleNote>;

/** Like {@link readRole}, but a note that is missing is made: the machine keeps its id. */
export function ensureRole(folder: DataFolder): RoleNote {
  if (!existsSync(folder.role)) createOnce(folder.role, JSON.stringify(readRole(folder)));
  return readRole(folder);
}

/** The note in a data folder, or a new one where it is missing. @throws Refused `configuration` if it is damaged */
export function readRole(folder: DataFolder): RoleNote {
  const text = unlessCode(null, () => readFileSync(folder.role, 'utf8'), 'ENOENT');
  if (text === null) {
    const machine = `${hostname()}-${randomBytes(4).toString('hex')}`;
    return { machine, promoted: false, epoch_due: null, superseded: null };
  }
  const value: unknown = unlessError(null, () => JSON.parse(text));
  if (Value.Check(RoleNote, value)) return value;
  throw misconfigured(
    `${folder.role} is damaged: it says whether this machine writes the copy. If it was a standby, delete the file; otherwise restore the copy: wirewatch restore SRC --replace`,
  );
}

/** The note in a data folder; null: it is damaged. */
export function soundRole(folder: DataFolder): RoleNote | null {
  try {
    return readRole(folder);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

export const noteRole = (folder: DataFolder, note: RoleNote) =>
  writeWhole(folder.role, `${JSON.stringify(note)}\n`);

/** Notes at a start what the configuration says, where it is another than at the last start: a full disk refuses no start. */
export function noteStandby(folder: DataFolder, { standby }: { readonly standby: boolean }): void {
  const note = readRole(folder);
  if ((note.standby ?? false) !== standby) noteRole(folder, { ...note, standby });
}

/** @param copy the section `[copy]`, which a command may not have been given: then the last start tells */
export function roleOf(note: RoleNote, { standby }: { readonly standby: boolean }): Role {
  if (note.superseded !== null) return 'superseded';
  return (standby || note.standby === true) && !note.promoted ? 'standby' : 'writer';
}

/** @throws Refused `configuration` if another machine has taken over, or if a standby has nothing to begin with */
export function requireRole(note: RoleNote, folder: DataFolder, copy: { standby: boolean; to: string }) {
  if (note.superseded !== null)
    throw misconfigured(
      `another machine took over from this one (${note.superseded}). Make this one its standby: set [copy] standby, and run wirewatch restore ${copy.to || 'SRC'} --replace. To go on here instead, stop the other machine for good, delete ${folder.role}, and set [copy] to to a new place.`,
    );
  if (roleOf(note, copy) === 'standby' && !isThere(folder.access) && !isThere(folder.spare))
    throw misconfigured(
      `a standby begins with what the copy has. Run this first: wirewatch restore ${copy.to || 'SRC'} --data ${folder.root}`,
    );
}

const Kept = Type.Object({
  to: Type.String(),
  /** The last entry that was written, and the one that was being written after it. */
  ids: Type.Array(Type.String()),
});

/**
 * Keeps in mind what a copy may end with: once a snapshot has taken the place of that entry, nothing else tells whose it is.
 * Each copy has a file, since several processes may write copies at once.
 * @param own the id of the copy, and where it is
 * @param marks what it ends with, and what is about to be written
 */
export function noteKept(folder: DataFolder, own: { copy: string; to: string }, marks: (LogMark | null)[]) {
  if (mkdirSync(folder.copied, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(folder.root);
  const kept = JSON.stringify({ to: own.to, ids: marks.flatMap((mark) => mark?.id ?? []) });
  // Another process may note the same copy now.
  writeWhole(join(folder.copied, `${own.copy}.json`), `${kept}\n`, join(folder.copied, `.${randomUUID()}`));
}

/** What is noted of each copy, by its id; a damaged note is none. */
export function keptCopies({ copied }: DataFolder): ReadonlyMap<string, Static<typeof Kept>> {
  const kept = new Map<string, Static<typeof Kept>>();
  const names = existsSync(copied) ? readdirSync(copied) : [];
  for (const name of names.filter((found) => !found.startsWith('.'))) {
    // It may be damaged, or about to be replaced.
    const value = unlessError(null, () => JSON.parse(readFileSync(join(copied, name), 'utf8')));
    if (Value.Check(Kept, value)) kept.set(name.replace(/\.json$/, ''), value);
  }
  return kept;
}

const verifiedNote = ({ copied }: DataFolder) => join(copied, '.verified');

/** Notes of which verification, by its time in epoch milliseconds, all of the copy was read and found sound, too. */
export const noteCopyVerified = (folder: DataFolder, at: number) =>
  writeWhole(verifiedNote(folder), `${at}\n`);

/** The time that was noted last; null: none is. */
export function copyVerifiedAt(folder: DataFolder): number | null {
  const path = verifiedNote(folder);
  return existsSync(path) ? Number(readFileSync(path, 'utf8')) : null;
}
