/** Reading a journal line by line, also one of years, and which journal it is. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';

export interface JournalLine {
  /** Where it begins, in bytes. */
  readonly at: number;
  /** Without its line break. */
  readonly text: string;
  /** Null where it is no JSON object, as a line that a crash cut off. */
  readonly entry: Readonly<Record<string, unknown>> | null;
}

const READ_BYTES = 256 * 1024;

/** The whole lines from a place on, in bytes; what stands behind the last line break is none. */
export function* journalLines(path: string, from = 0): Generator<JournalLine> {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r');
  try {
    let rest = Buffer.alloc(0);
    let restAt = from;
    for (;;) {
      const buffer = Buffer.alloc(READ_BYTES);
      const read = readSync(file, buffer, 0, READ_BYTES, restAt + rest.length);
      if (read === 0) return;
      const bytes = Buffer.concat([rest, buffer.subarray(0, read)]);
      let start = 0;
      for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
        const text = bytes.toString('utf8', start, end);
        yield { at: restAt + start, text, entry: parse(text) };
        start = end + 1;
      }
      rest = bytes.subarray(start);
      restAt += start;
    }
  } finally {
    closeSync(file);
  }
}

/** By its first line; null for one that was begun without a name, and where there is none. */
export function journalId(path: string): string | null {
  for (const { entry } of journalLines(path)) return textIn(entry, 'journal');
  return null;
}

export function textIn(entry: JournalLine['entry'], name: string): string | null {
  const value = entry?.[name];
  return typeof value === 'string' ? value : null;
}

export function numberIn(entry: JournalLine['entry'], name: string): number | null {
  const value = entry?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
}

function parse(text: string): JournalLine['entry'] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
