/** `backup.json` in a backup folder: how far the backup goes. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { isObject } from '../log/format.ts';
import { failed, isErrorCode, type Refused } from '../refused.ts';
import { writeWhole } from '../store/folder.ts';
import { parseInstant } from '../time.ts';

export const STATE = 'backup.json';
const FORMAT_VERSION = 1;

const BackupState = Type.Object({
  format: Type.Literal('wirewatch-backup'),
  version: Type.Number(),
  /** The version of the program that wrote it. */
  program: Type.String(),
  /** The backup contains everything up to this time. */
  at: Type.String(),
  /** The last entry of the log. */
  log: Type.Union([Type.Null(), Type.Object({ entry: Type.Number(), id: Type.String() })]),
  /** When the newest version epoch began, epoch milliseconds; 0: there was none; null: not known. */
  epoch: Type.Union([Type.Null(), Type.Number()]),
  /** `access.db`. An interrupted run may have left a later one. */
  access: Type.Object({ installation: Type.String(), change: Type.Number(), sha256: Type.String() }),
  secret_sha256: Type.String(),
});

/** The state of a backup: written when everything that it names is on the disk. */
export type BackupState = Readonly<Static<typeof BackupState>>;

/** A copy of `access.db`. */
export type CopiedAccess = BackupState['access'];

export function newState(members: Omit<BackupState, 'format' | 'version'>): BackupState {
  return { format: 'wirewatch-backup', version: FORMAT_VERSION, ...members };
}

/** @returns null if there is none; @throws Refused `failed` if it is damaged, or from a newer program */
export function readState(folder: string): BackupState | null {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(join(folder, STATE), 'utf8'));
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return null;
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (isObject(value) && typeof value.version === 'number' && value.version > FORMAT_VERSION)
    throw failed(
      `its ${STATE} has format version ${value.version}, but this program supports ${FORMAT_VERSION}. Use the version of Wirewatch that wrote it: ${value.program}`,
    );
  if (Value.Check(BackupState, value)) return value;
  throw failed(`its ${STATE} is damaged`);
}

/** @returns the bytes that were written */
export function writeState(folder: string, state: BackupState): number {
  return writeWhole(join(folder, STATE), `${JSON.stringify(state)}\n`);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * When a backup folder was last updated, epoch milliseconds; null for never.
 * @throws the file system's error, and Refused `failed` as {@link readState} does
 */
export function backedUpMs(folder: string): number | null {
  return parseInstant(readState(folder)?.at ?? '');
}

/** A file instead of a backup folder, whether it is to be written or read. */
export function notAFolder(path: string): Refused {
  return failed(
    `${path} cannot be a backup: a backup is a folder. To keep one as a single file, pack the folder with tar, and unpack it before you verify or restore it.`,
  );
}
