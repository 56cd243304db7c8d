/** The archive against the records of files: what was applied can be read again. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shortName } from '../ingest/drop-folder.ts';
import { paced } from '../pace.ts';
import { isErrorCode } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { sha256Of } from '../store/folder.ts';
import type { Findings } from './findings.ts';

interface ArchivedFile {
  readonly number: number;
  readonly name: string;
  readonly sha256: string | null;
  readonly bytes: number;
  readonly destination: string;
  readonly settled: number;
}

/** Those that retention deleted have no destination any more. */
const ARCHIVED = `
  SELECT number, name, sha256, bytes, destination, settled FROM ingest_file
  WHERE outcome = 'applied' AND destination IS NOT NULL`;

const RECORDED_AFTER_MS = paced(2000);

export interface ArchiveOptions {
  readonly drop: string;
  /** Whether each file is read to its end, or only looked for. */
  readonly hashes: boolean;
  readonly onFiles: (done: number, total: number) => void;
}

/** @param db without a transaction: the appliance settles and deletes files while others are read */
export async function checkArchive(
  db: Database,
  findings: Findings,
  { drop, hashes, onFiles }: ArchiveOptions,
): Promise<void> {
  const files = db.prepare<unknown[], ArchivedFile>(`${ARCHIVED} ORDER BY number`).all();
  const suspects: ArchivedFile[] = [];
  for (const [index, file] of files.entries()) {
    if ((await faultOf(file, drop, hashes)) !== null) suspects.push(file);
    onFiles(index + 1, files.length);
  }
  if (suspects.length === 0) return;
  // What was moved or deleted meanwhile is in its record soon.
  await sleep(RECORDED_AFTER_MS);
  const record = db.prepare<unknown[], ArchivedFile>(`${ARCHIVED} AND number = ?`);
  for (const { number } of suspects) {
    const file = record.get(number);
    const fault = file === undefined ? null : await faultOf(file, drop, hashes);
    if (fault !== null) findings.add('archive', `file ${number}, ${file?.destination}, ${fault}`);
  }
}

/** @returns in words what is wrong with it; null when it is as it was applied */
async function faultOf(file: ArchivedFile, drop: string, hashes: boolean): Promise<string | null> {
  const path = pathOf(drop, file);
  if (path === null) return `is not in ${drop}`;
  try {
    if (hashes && (await sha256Of(path)) !== file.sha256)
      return 'has another SHA-256 than when it was applied';
    return statSync(path).size === file.bytes ? null : 'has another length than when it was applied';
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return `is not in ${drop}`;
    throw error;
  }
}

/** One that is not settled may still lie where it was dealt with. @returns null where there is no such file */
function pathOf(drop: string, { number, name, destination, settled }: ArchivedFile): string | null {
  const paths = [join(drop, destination)];
  if (settled === 0) paths.push(join(drop, '.taken', `${number}.${shortName(name)}`));
  return paths.find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true) ?? null;
}
