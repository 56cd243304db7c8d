/** Which format a copy has, by its file: a copy that is continued in another one would be damaged. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { Refused } from '../refused.ts';
import { APPLICATION_ID } from './copy.ts';

export const COPY_FORMATS = ['sqlite', 'ndjson', 'csv'] as const;
export type CopyFormat = (typeof COPY_FORMATS)[number];

const NAMES: Record<CopyFormat, string> = { sqlite: 'SQLite', ndjson: 'NDJSON', csv: 'CSV' };
/** SQLite's database header: its magic string, and where the application id is (sqlite.org/fileformat.html). */
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
const APPLICATION_ID_OFFSET = 68;

/** @throws Refused `usage` when the file is a copy in another format */
export function requireFormat(path: string, format: CopyFormat): void {
  const found = formatOfCopy(path);
  if (found === null || found === format) return;
  const next = found === 'sqlite' ? 'Leave out --format' : `Use --format ${found}`;
  throw new Refused(
    'usage',
    `${path} is a copy in ${NAMES[found]}. ${next}, or name another file with --into.`,
  );
}

/** @returns null when there is no file, or its beginning is not that of a copy */
function formatOfCopy(path: string): CopyFormat | null {
  const head = headOf(path);
  if (head.toString('latin1', 0, MAGIC.length) === MAGIC) {
    const isCopy =
      head.length === HEADER_BYTES && head.readUInt32BE(APPLICATION_ID_OFFSET) === APPLICATION_ID;
    return isCopy ? 'sqlite' : null;
  }
  // Lines without a position beside them are of another client.
  if (!existsSync(`${path}.place`)) return null;
  const text = head.toString('latin1');
  if (text.startsWith('{')) return 'ndjson';
  return text.startsWith('id,') ? 'csv' : null;
}

function headOf(path: string): Buffer {
  // Opening a pipe would wait for its writer.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return Buffer.alloc(0);
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(HEADER_BYTES);
    return head.subarray(0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}
