/** Files that stay in the drop folder until an operator resets or accepts their window. */
import { counted } from '../../counted.ts';
import type { ExportName } from '../../detection/content-type.ts';
import { nullOfFileError } from '../../drop/file-errors.ts';
import { type DropNames, type HeldFile, type KnownFiles, waitingFiles } from '../../drop/waiting-names.ts';
import type { Database } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import { type HoldRules, heldBy } from '../../windows/holding.ts';
import { type ResettableStatus, statusPhrase } from '../../windows/window-states.ts';
import { recordedIn } from './finished-file.ts';

/** What the database knows of the files in the drop folder. */
export function knownFiles(db: Database, rules: HoldRules): KnownFiles {
  return { isRecorded: recordedIn(db), heldBy: heldBy(db, rules) };
}

/** In order of their windows; none if the drop folder cannot be read, since an alert says that. */
export function heldFiles(drop: DropNames, db: Database, rules: HoldRules): HeldFile[] {
  try {
    return waitingFiles(drop, knownFiles(db, rules)).held;
  } catch (error) {
    return nullOfFileError(error) ?? [];
  }
}

/** The command that has the held file of a window read. @param which a start, or `--all` */
export function releaseCommand(exportName: ExportName, status: ResettableStatus, which: string): string {
  return `wirewatch window ${status === 'failed' ? 'reset' : 'accept'} ${exportName} ${which}`;
}

/** Why a file is held, and the command that has it read. */
export function heldReason({ file, status }: HeldFile): { reason: string; what_to_do: string } {
  const command = releaseCommand(file.export, status, formatMs(file.window_start));
  return { reason: `its window ${statusPhrase(status)}`, what_to_do: `To read it, run: ${command}` };
}

/** What the alert says of all of them, with one command for each export and status; null: there are none. */
export function heldDetail(held: readonly HeldFile[]): string | null {
  const groups = new Map<string, { first: HeldFile; windows: Set<number> }>();
  for (const waiting of held) {
    const { file, status } = waiting;
    const key = `${file.export} ${status}`;
    const { first, windows } = groups.get(key) ?? { first: waiting, windows: new Set() };
    const isEarlier = file.window_start < first.file.window_start;
    groups.set(key, { first: isEarlier ? waiting : first, windows: windows.add(file.window_start) });
  }
  const texts = [...groups.values()].map(({ first: { file, status }, windows }) => {
    const start = formatMs(file.window_start);
    return windows.size === 1
      ? `${file.export}: a file waits for the ${status} window ${start}; to read it, run: ${releaseCommand(file.export, status, start)}`
      : `${file.export}: files wait for ${counted(windows.size, `${status} window`)} from ${start} on; to read them, run: ${releaseCommand(file.export, status, '--all')}`;
  });
  return texts.length === 0 ? null : texts.join('. ');
}
