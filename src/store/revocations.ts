/** Which keys the journal names as revoked, for those who are about to make one that is not there. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 1024 * 1024;
const REVOCATION = '"key_revoked"';

/** Reads the journal whole, a piece at a time; lines that are cut off or foreign are passed over. */
export function readRevokedKeys(path: string): Set<string> {
  const revoked = new Set<string>();
  if (!existsSync(path)) return revoked;
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(CHUNK_BYTES);
    let rest = '';
    for (let length = readSync(file, bytes); length > 0; length = readSync(file, bytes)) {
      // Its lines are ASCII but for names of files, so a character cut in two harms none that counts.
      const lines = `${rest}${bytes.toString('utf8', 0, length)}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.includes(REVOCATION)) note(line, revoked);
    }
    note(rest, revoked);
  } finally {
    closeSync(file);
  }
  return revoked;
}

function note(line: string, revoked: Set<string>): void {
  try {
    const entry: unknown = JSON.parse(line);
    const id: unknown =
      typeof entry === 'object' && entry !== null ? Reflect.get(entry, 'key_revoked') : null;
    if (typeof id === 'string') revoked.add(id);
  } catch {
    // A line that a crash cut off.
  }
}
