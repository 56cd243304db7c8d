/** Scans the drop folder; reports when it cannot be used, and which files wait for an operator to release their window. */
import { statSync } from 'node:fs';
import { counted } from '../../counted.ts';
import type { ExportName } from '../../detection/content-type.ts';
import { IGNORED, type Scan } from '../../drop/drop-folder.ts';
import { isFileError, plainError, unlessFileError } from '../../drop/file-errors.ts';
import { checkWritable, ForeignFolder } from '../../drop/own-folder.ts';
import { type DropNames, type HeldFile, SCANNED_FILES_MAX, waitingFiles } from '../../drop/waiting-names.ts';
import type { Database } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import { type HoldRules, heldBy } from '../../windows/ledger.ts';
import { type ResettableStatus, statusPhrase } from '../../windows/window-states.ts';
import { type Ingest, recordedIn } from './finished-file.ts';

/** Ignored names that are logged, each once. */
const IGNORED_MAX = 10_000;
const UNUSABLE = ['drop folder not readable', 'drop folder not writable'] as const;

export function folderScanner(files: Ingest, rules: HoldRules) {
  const { drop, writer, now, log, setCondition } = files;
  const ignored = new Set<string>();
  /** Paths of the files that were held at the last scan. */
  let known: ReadonlySet<string> = new Set();
  let isUsable = true;

  function report(name: (typeof UNUSABLE)[number], error: unknown): void {
    const err = plainError(error);
    for (const alert of UNUSABLE) setCondition(alert, alert === name ? `${drop.root}: ${err.message}` : null);
    const fields = { path: drop.root, err };
    if (isUsable)
      log('error', 'cannot use the drop folder: check that it exists and can be read and written', fields);
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
      log('warn', 'ignored in the drop folder', { name, reason: IGNORED });
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
        const isFolder = () => statSync(drop.root, { throwIfNoEntry: false })?.isDirectory() === true;
        const isRead = scan !== null || (error instanceof ForeignFolder && isFolder());
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

export function knownFiles(db: Database, rules: HoldRules) {
  return { isRecorded: recordedIn(db), heldBy: heldBy(db, rules) };
}

/** In order of their windows; none if the drop folder cannot be read, since an alert says that. */
export const heldFiles = (drop: DropNames, db: Database, rules: HoldRules): HeldFile[] =>
  unlessFileError([], () => waitingFiles(drop, knownFiles(db, rules), SCANNED_FILES_MAX).held);

/** The command that has the held file of a window read. @param which a start, or `--all` */
export const releaseCommand = (exportName: ExportName, status: ResettableStatus, which: string): string =>
  `wirewatch window ${status === 'failed' ? 'reset' : 'accept'} ${exportName} ${which}`;

/** Why a file is held, and the command that has it read. */
export function heldReason({ file, status }: HeldFile): { reason: string; what_to_do: string } {
  const command = releaseCommand(file.export, status, formatMs(file.window_start));
  return { reason: `its window ${statusPhrase(status)}`, what_to_do: `To read it, run: ${command}` };
}

/** What the alert says of files in the order of their windows, a command for each export and status; null: of none. */
export function heldDetail(held: readonly HeldFile[]): string | null {
  const groups = Map.groupBy(held, ({ file, status }) => `${file.export} ${status}`);
  const texts = [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { file, status } = first;
    const windows = new Set(group.map((one) => one.file.window_start)).size;
    const start = formatMs(file.window_start);
    return windows === 1
      ? `${file.export}: a file waits for the ${status} window ${start}; to read it, run: ${releaseCommand(file.export, status, start)}`
      : `${file.export}: files wait for ${counted(windows, `${status} window`)} from ${start} on; to read them, run: ${releaseCommand(file.export, status, '--all')}`;
  });
  return texts.length === 0 ? null : texts.join('. ');
}
