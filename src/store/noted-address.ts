/** The addresses of the running appliance and of its console, noted in the data folder for commands. */
import { existsSync, readFileSync } from 'node:fs';
import { isErrorCode, reasonOf } from '../refused.ts';
import { isForbidden } from './database-errors.ts';
import { type DataFolder, writeWhole } from './folder.ts';
import { isLocked } from './locks.ts';

/** Whether an appliance serves a data folder; `url` is null if no address is noted. */
export type Running =
  | { readonly kind: 'running'; readonly url: string | null }
  | { readonly kind: 'stopped' }
  /** This user may not read the data folder. */
  | { readonly kind: 'unknown' };

/** @param onFailure called if it cannot be written, for example on a full disk: the appliance serves all the same */
export function noteAddress(path: string, url: string, onFailure: (reason: string) => void): void {
  try {
    writeWhole(path, `${url}\n`);
  } catch (error) {
    onFailure(reasonOf(error));
  }
}

/** @returns null if none is noted */
export function readNoted(path: string): string | null {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return /^https?:\/\/\S+$/.test(text) ? text : null;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** A crash leaves the note behind, so the lock decides whether it is current. */
export function readRunning({ serveLock, address }: DataFolder): Running {
  try {
    return existsSync(serveLock) && isLocked(serveLock)
      ? { kind: 'running', url: readNoted(address) }
      : { kind: 'stopped' };
  } catch (error) {
    if (isForbidden(error)) return { kind: 'unknown' };
    throw error;
  }
}
