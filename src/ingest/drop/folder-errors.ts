/** A look into the drop folder, and what keeps it from being read or from being written. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../../refused.ts';
import { newestWindowEnd } from '../../windows/ledger.ts';
import { findFile } from '../apply/file-record.ts';
import { plainError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';
import { OWN_FOLDERS, requireRealFolder, type Scan } from './drop-folder.ts';

/** Names that are remembered, so that each is told of once. */
const ALONE_MAX = 10_000;
const UNUSABLE = ['drop folder not readable', 'drop folder not writable'] as const;

export class DropLook {
  readonly #workshop: Workshop;
  readonly #knownAlone = new Set<string>();
  #isUsable = true;

  constructor(workshop: Workshop) {
    this.#workshop = workshop;
  }

  /** @returns null when the folder cannot be used now */
  scan(): Scan | null {
    const { db, drop, now, trouble } = this.#workshop;
    // A clock that is behind would have files refused as far ahead of their time. Only windows prove that it is
    // behind: by delivery times, one that was ahead once would have windows read before they ended.
    const nowMs = Math.max(now(), newestWindowEnd(db));
    let scan: Scan;
    try {
      scan = drop.scan(nowMs, (number) => findFile(db, number) !== null);
    } catch (error) {
      this.#tell('drop folder not readable', error);
      return null;
    }
    try {
      checkWritable(drop.root);
    } catch (error) {
      this.#tell('drop folder not writable', error);
      return null;
    }
    if (!this.#isUsable) this.#workshop.log('info', 'the drop folder can be used again');
    this.#isUsable = true;
    for (const name of UNUSABLE) trouble(name, null);
    this.#tellLeftAlone(scan.leftAlone);
    return scan;
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  #tell(name: (typeof UNUSABLE)[number], error: unknown): void {
    const { drop, log, trouble } = this.#workshop;
    const err = plainError(error);
    const path = drop.root;
    for (const one of UNUSABLE) trouble(one, one === name ? `${path}: ${err.message}` : null);
    if (this.#isUsable) {
      log('error', 'cannot use the drop folder: check that it exists and can be read and written', {
        path,
        err,
      });
    }
    this.#isUsable = false;
  }

  #tellLeftAlone(names: readonly string[]): void {
    for (const name of names) {
      if (this.#knownAlone.has(name)) continue;
      if (this.#knownAlone.size < ALONE_MAX) this.#knownAlone.add(name);
      this.#workshop.log('warn', 'ignored in the drop folder: not a regular file with a UTF-8 name', {
        name,
      });
    }
  }
}

/** @throws the file system's error when files could not be moved out of the folder, or into its own folders, as they must be */
function checkWritable(root: string): void {
  const needed = constants.R_OK | constants.W_OK | constants.X_OK;
  accessSync(root, needed);
  for (const name of OWN_FOLDERS) {
    try {
      requireRealFolder(join(root, name));
      accessSync(join(root, name), needed);
    } catch (error) {
      // One that is gone is made again when it is needed.
      if (!isErrorCode(error, 'ENOENT')) throw error;
    }
  }
}
