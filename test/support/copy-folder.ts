/** Copies a data folder without its socket, which cannot be copied: a killed process leaves one. */
import { cpSync, lstatSync } from 'node:fs';

export function copyFolder(from: string, to: string): void {
  const filter = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true;
  cpSync(from, to, { recursive: true, preserveTimestamps: true, filter });
}
