/**
 * What this machine is to the copy: the one that writes it, a standby that follows it, or a writer whose place another
 * machine took. The configuration says what it begins as; a promotion changes it, and is noted in the data folder.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isErrorCode, misconfigured } from '../refused.ts';
import { type DataFolder, writeWhole } from './folder.ts';
import type { LogMark } from './log-mark.ts';

export const ROLES = ['writer', 'standby', 'superseded'] as const;
export type Role = (typeof ROLES)[number];

/** The kind of the log's entry by which a machine becomes the writer. */
export const PROMOTE = 'promote';

const RoleNote = Type.Object({
  /** Random, of this data folder on this machine. */
  machine: Type.String(),
  /** Whether it was promoted: then it writes, whatever the configuration says. */
  promoted: Type.Boolean(),
  /** The version epoch that must begin before it ingests, since the old writer's end may be lost; null: none. */
  epoch_due: Type.Union([Type.Integer(), Type.Null()]),
  /** Of each copy, by its id: where it was last, and the last entry that was written, and the one that was being written after it. */
  kept: Type.Record(Type.String(), Type.Object({ to: Type.String(), ids: Type.Array(Type.String()) })),
  /** Who took its place, in words; null: nobody. */
  superseded: Type.Union([Type.String(), Type.Null()]),
});
export type RoleNote = Static<typeof RoleNote>;

/** As {@link readRole}; a note that is missing is made, so that the machine keeps its id. */
export function ensureRole(folder: DataFolder): RoleNote {
  const note = readRole(folder);
  if (!existsSync(folder.role)) noteRole(folder, note);
  return note;
}

/** The note in a data folder, or a new one where it is missing. @throws Refused `configuration` if it is damaged */
export function readRole(folder: DataFolder): RoleNote {
  try {
    const value: unknown = JSON.parse(readFileSync(folder.role, 'utf8'));
    if (Value.Check(RoleNote, value)) return value;
  } catch (error) {
    if (!isErrorCode(error, 'ENOENT') && !(error instanceof SyntaxError)) throw error;
    if (isErrorCode(error, 'ENOENT')) {
      const machine = `${hostname()}-${randomBytes(4).toString('hex')}`;
      return { machine, promoted: false, epoch_due: null, kept: {}, superseded: null };
    }
  }
  throw misconfigured(
    `${folder.role} is damaged: it says whether this machine writes the copy. If it was a standby, delete the file; otherwise restore the copy: wirewatch restore SRC --replace`,
  );
}

export function noteRole(folder: DataFolder, note: RoleNote): void {
  writeWhole(folder.role, `${JSON.stringify(note)}\n`);
}

/** @param copy the section `[copy]` */
export function roleOf(note: RoleNote, { standby }: { readonly standby: boolean }): Role {
  if (note.superseded !== null) return 'superseded';
  return standby && !note.promoted ? 'standby' : 'writer';
}

/**
 * Keeps in mind what a copy may end with: once a snapshot has taken the place of that entry, nothing else tells whose it is.
 * @param copy its id; @param to where it is
 * @param marks what it ends with, and what is about to be written
 */
export function noteKept(
  folder: DataFolder,
  { copy, to }: { readonly copy: string; readonly to: string },
  marks: readonly (LogMark | null)[],
): void {
  const kept = { to, ids: marks.flatMap((mark) => mark?.id ?? []) };
  const note = readRole(folder);
  if (JSON.stringify(note.kept[copy]) !== JSON.stringify(kept))
    noteRole(folder, { ...note, kept: { ...note.kept, [copy]: kept } });
}
