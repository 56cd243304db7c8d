/** Scans the drop folder, and reports when it cannot be read or written. */
import { accessSync, constants } from 'node:fs';
import { isErrorCode } from '../../refused.ts';
import { type HoldRules, heldBy } from '../../windows/holding.ts';
import { isFileError, plainError } from '../file-errors.ts';
import type { Scan } from './drop-folder.ts';
import { type FileStore, recordedIn } from './finished-file.ts';
import { heldDetail, heldReason } from './held-files.ts';
import { ForeignFolder, inFolder, OWN_FOLDERS } from './own-folder.ts';

/** Ignored names that are logged, each once. */
const IGNORED_MAX = 10_000;
const UNUSABLE = ['drop folder not readable', 'drop folder not writable'] as const;

export class FolderScanner {
  readonly #files: FileStore;
  readonly #rules: HoldRules;
  readonly #ignored = new Set<string>();
  /** Paths of the files that were held at the last scan. */
  #held: ReadonlySet<string> = new Set();
  #isUsable = true;

  constructor(files: FileStore, rules: HoldRules) {
    this.#files = files;
    this.#rules = rules;
  }

  /** @param check throws to end the scan; @returns null when the folder cannot be used now */
  async scan(check: () => void): Promise<Scan | null> {
    const { drop, writer, now, log, setCondition } = this.#files;
    let scan: Scan | null = null;
    try {
      const known = { isRecorded: recordedIn(writer.db), heldBy: heldBy(writer.db, this.#rules) };
      scan = await drop.scan(now(), known, check);
      checkWritable(drop.root);
    } catch (error) {
      if (scan === null && !isFileError(error)) throw error;
      const isRead = scan !== null || error instanceof ForeignFolder;
      this.#report(isRead ? 'drop folder not writable' : 'drop folder not readable', error);
      return null;
    }
    if (!this.#isUsable) log('info', 'the drop folder can be used again');
    this.#isUsable = true;
    for (const name of UNUSABLE) setCondition(name, null);
    this.#logIgnored(scan.ignored);
    this.#reportHeld(scan.held);
    return scan;
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  #report(name: (typeof UNUSABLE)[number], error: unknown): void {
    const { drop, log, setCondition } = this.#files;
    const err = plainError(error);
    const path = drop.root;
    for (const one of UNUSABLE) setCondition(one, one === name ? `${path}: ${err.message}` : null);
    if (this.#isUsable)
      log('error', 'cannot use the drop folder: check that it exists and can be read and written', {
        path,
        err,
      });
    this.#isUsable = false;
  }

  #reportHeld(held: Scan['held']): void {
    this.#files.setCondition('held windows', heldDetail(held));
    for (const one of held) {
      if (this.#held.has(one.path)) continue;
      this.#files.log('info', 'file held', { file: one.file.name, ...heldReason(one) });
    }
    this.#held = new Set(held.map(({ path }) => path));
  }

  #logIgnored(names: readonly string[]): void {
    for (const name of names) {
      if (this.#ignored.has(name) || this.#ignored.size === IGNORED_MAX) continue;
      this.#ignored.add(name);
      this.#files.log(
        'warn',
        'ignored in the drop folder: not a regular file with a UTF-8 name, or a hard link to a file of root or of Wirewatch',
        { name },
      );
    }
  }
}

/** @throws the file system's error if files cannot be moved out of the folder or into its own folders */
function checkWritable(root: string): void {
  const needed = constants.R_OK | constants.W_OK | constants.X_OK;
  inFolder(root, '', (path) => accessSync(path, needed));
  for (const name of OWN_FOLDERS) {
    try {
      inFolder(root, name, (path) => accessSync(path, needed));
    } catch (error) {
      // A missing one is made when it is needed.
      if (!isErrorCode(error, 'ENOENT')) throw error;
    }
  }
}
