/** Which files processes have open, by /proc of Linux. */
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { unlessError } from '../../src/refused.ts';

/** @returns the paths below a folder that this process has open, in any thread */
export const openFilesBelow = (folder: string): string[] =>
  openFiles('self').filter((path) => path.startsWith(folder));

/** Whether any process of this user has the file open. */
export const isOpen = (path: string): boolean =>
  readdirSync('/proc').some((name) => /^\d+$/.test(name) && openFiles(name).includes(path));

/** @param pid of a process, or `self`; @returns the paths of its open files, and what stands for pipes and sockets */
export function openFiles(pid: string): string[] {
  const folder = join('/proc', pid, 'fd');
  // A process can end, and close a file, at any time.
  const open = unlessError<string[], []>([], () => readdirSync(folder));
  return open.flatMap((fd) => unlessError([], () => readlinkSync(join(folder, fd))));
}
