/** The archive against the records of files: what was applied can be read again. */
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { shortName } from '../ingest/drop-folder.ts';
import type { Database } from '../store/database.ts';
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
export const ARCHIVED = `
  SELECT number, name, sha256, bytes, destination, settled FROM ingest_file
  WHERE outcome = 'applied' AND destination IS NOT NULL ORDER BY number`;

const READ_BYTES = 1024 * 1024;

export interface ArchiveOptions {
  readonly drop: string;
  /** Whether each file is read to its end, or only looked for. */
  readonly hashes: boolean;
  readonly onFiles: (done: number, total: number) => void;
}

export async function checkArchive(
  db: Database,
  findings: Findings,
  { drop, hashes, onFiles }: ArchiveOptions,
): Promise<void> {
  const files = db.prepare<unknown[], ArchivedFile>(ARCHIVED).all();
  for (const [index, file] of files.entries()) {
    const path = pathOf(drop, file);
    const what = `file ${file.number}, ${file.destination},`;
    if (path === null) findings.add('archive', `${what} is not in ${drop}`);
    else if (hashes && (await hashOf(path)) !== file.sha256)
      findings.add('archive', `${what} has another SHA-256 than when it was applied`);
    else if (statSync(path).size !== file.bytes)
      findings.add('archive', `${what} has another length than when it was applied`);
    onFiles(index + 1, files.length);
  }
}

/** One that is not settled may still lie where it was dealt with. @returns null where there is no such file */
function pathOf(drop: string, { number, name, destination, settled }: ArchivedFile): string | null {
  const paths = [join(drop, destination)];
  if (settled === 0) paths.push(join(drop, '.taken', `${number}.${shortName(name)}`));
  return paths.find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true) ?? null;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}
