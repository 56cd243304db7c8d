/**
 * The folder that holds the agency's photos, each under its number: `<id>.jpg` and so on.
 *
 * The name is made of digits, and only a regular file counts: links are not followed and pipes not waited for, so
 * nothing outside the folder is read.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import { type FileState, readState } from './file-body.ts';

/** The first that exists counts. */
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['.jpg', 'image/jpeg'],
  ['.jpeg', 'image/jpeg'],
  ['.png', 'image/png'],
  ['.webp', 'image/webp'],
  ['.gif', 'image/gif'],
  ['.tif', 'image/tiff'],
]);
export const PHOTO_TYPES = [...new Set(CONTENT_TYPES.values())];

/** Without O_NONBLOCK, opening a pipe would block a thread of the pool until it has a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** The name does not exist, or is a link, a socket or a device, or the folder does not exist. */
const NOT_A_FILE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO', 'EOPNOTSUPP', 'ENODEV'];

export interface Photo {
  /** Open; the caller closes it. */
  readonly handle: FileHandle;
  readonly state: FileState;
  readonly contentType: string;
}

/** @returns null when there is none; an empty file is still being written and counts as none */
export async function openPhoto(folder: string, id: number): Promise<Photo | null> {
  for (const [ending, contentType] of CONTENT_TYPES) {
    const file = await openFile(join(folder, `${id}${ending}`));
    if (file !== null) return { ...file, contentType };
  }
  return null;
}

async function openFile(path: string): Promise<Pick<Photo, 'handle' | 'state'> | null> {
  const handle = await open(path, OPEN_FLAGS).catch((error: unknown) => {
    if (isErrorCode(error, ...NOT_A_FILE)) return null;
    throw error;
  });
  if (handle === null) return null;
  let isKept = false;
  try {
    const state = await readState(handle);
    isKept = state.isFile && state.size > 0;
    return isKept ? { handle, state } : null;
  } finally {
    if (!isKept) await handle.close();
  }
}
