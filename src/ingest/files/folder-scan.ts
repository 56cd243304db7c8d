/** Scans the drop folder, and reports when it cannot be read or written. */
import { accessSync, constants } from 'node:fs';
import type { Scan } from '../../drop/drop-folder.ts';
import { isFileError, plainError } from '../../drop/file-errors.ts';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../../drop/own-folder.ts';
import type { HeldFile } from '../../drop/waiting-names.ts';
import { isErrorCode } from '../../refused.ts';
import type { HoldRules } from '../../windows/holding.ts';
import type { FileStore } from './finished-file.ts';
import { heldDetail, heldFiles, heldReason, knownFiles } from './held-files.ts';

/** Ignored names that are logged, each once. */
const IGNORED_MAX = 10_000;
const UNUSABLE = ['drop folder not readable', 'drop folder not writable'] as const;

export type FolderScanner = ReturnType<typeof folderScanner>;

export function folderScanner(files: FileStore, rules: HoldRules) {
  const { drop, writer, now, log, setCondition } = files;
  const ignored = new Set<string>();
  /** Paths of the files that were held at the last scan. */
  let known: ReadonlySet<string> = new Set();
  let isUsable = true;

  function report(name: (typeof UNUSABLE)[number], error: unknown): void {
    const path = drop.root;
    const err = plainError(error);
    for (const alert of UNUSABLE) setCondition(alert, alert === name ? `${path}: ${err.message}` : null);
    if (isUsable)
      log('error', 'cannot use the drop folder: check that it exists and can be read and written', {
        path,
        err,
      });
    isUsable = false;
  }

  function reportHeld(held: readonly HeldFile[] = heldFiles(drop, writer.db, rules)): void {
    setCondition('held windows', heldDetail(held));
    for (const found of held)
      if (!known.has(found.path)) log('info', 'file held', { file: found.file.name, ...heldReason(found) });
    known = new Set(held.map(({ path }) => path));
  }

  function logIgnored(names: readonly string[]): void {
    for (const name of names) {
      if (ignored.has(name) || ignored.size === IGNORED_MAX) continue;
      ignored.add(name);
      log(
        'warn',
        'ignored in the drop folder: not a regular file with a UTF-8 name, or a hard link to a file of root or of Wirewatch',
        { name },
      );
    }
  }

  return {
    isUsable: () => isUsable,
    /** Reports the files that are held now, without a scan. */
    reportHeld: () => reportHeld(),
    /** @returns null when the folder cannot be used now */
    scan(): Scan | null {
      let scan: Scan | null = null;
      try {
        scan = drop.scan(now(), knownFiles(writer.db, rules));
        checkWritable(drop.root);
      } catch (error) {
        if (scan === null && !isFileError(error)) throw error;
        const isRead = scan !== null || error instanceof ForeignFolder;
        report(isRead ? 'drop folder not writable' : 'drop folder not readable', error);
        return null;
      }
      if (!isUsable) log('info', 'the drop folder can be used again');
      isUsable = true;
      for (const name of UNUSABLE) setCondition(name, null);
      logIgnored(scan.ignored);
      reportHeld(scan.held);
      return scan;
    },
  };
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
