/** The address of the running appliance and its process, noted in the data folder for commands. */
import { readFileSync } from 'node:fs';
import { reasonOf, unlessCode } from '../refused.ts';
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
export function noteAddress({ address }: DataFolder, url: string, onFailure: (reason: string) => void): void {
  try {
    writeWhole(address, `${url}\n${process.pid}\n`);
  } catch (error) {
    onFailure(reasonOf(error));
  }
}

/** Of the process that noted its address; null if none did. */
export const readProcessId = (folder: DataFolder): number | null => Number(noted(folder)[1]) || null;

const noted = ({ address }: DataFolder): string[] =>
  unlessCode([], () => readFileSync(address, 'utf8').split('\n'), 'ENOENT');

/** A crash leaves the note behind, so the lock decides whether it is current. */
export function readRunning(folder: DataFolder): Running {
  const { serveLock } = folder;
  try {
    if (!isLocked(serveLock)) return { kind: 'stopped' };
    const [url = ''] = noted(folder);
    return { kind: 'running', url: /^https?:\/\/\S+$/.test(url) ? url : null };
  } catch (error) {
    if (isForbidden(error)) return { kind: 'unknown' };
    throw error;
  }
}
