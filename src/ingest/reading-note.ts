/** `reading.json` in the data folder: the progress of a long file while it is read, for `wirewatch ingest status`. */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DataFolder } from '../store/folder.ts';
import { MINUTE_MS, SECOND_MS } from '../time.ts';

const WRITE_EVERY_MS = SECOND_MS;
const STALE_AFTER_MS = MINUTE_MS;
/** A shorter file is read before anybody could ask. */
const ROWS_MIN = 20_000;

export interface ReadingNote {
  readonly file: string;
  readonly rows: number;
}

function notePath({ root }: DataFolder): string {
  return join(root, 'reading.json');
}

/** Writes the note. Errors are ignored. */
export class ReadingNotes {
  readonly #path: string;
  readonly #monotonicMs: () => number;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #isThere = true;

  constructor(folder: DataFolder, monotonicMs: () => number = () => performance.now()) {
    this.#path = notePath(folder);
    this.#monotonicMs = monotonicMs;
    // A crash may have left one.
    this.#remove();
  }

  note(file: string, rows: number, isDone: boolean): void {
    if (isDone) {
      this.#remove();
      return;
    }
    const nowMs = this.#monotonicMs();
    if (rows < ROWS_MIN || nowMs - this.#writtenAtMs < WRITE_EVERY_MS) return;
    this.#writtenAtMs = nowMs;
    const note: ReadingNote = { file, rows };
    this.#isThere = true;
    ignoring(() => writeFileSync(this.#path, JSON.stringify(note), { mode: 0o600 }));
  }

  close(): void {
    this.#remove();
  }

  #remove(): void {
    if (!this.#isThere) return;
    this.#isThere = false;
    this.#writtenAtMs = Number.NEGATIVE_INFINITY;
    ignoring(() => rmSync(this.#path, { force: true }));
  }
}

/** @returns null if no long file is being read, or the note cannot be read */
export function readReadingNote(folder: DataFolder, nowMs: number): ReadingNote | null {
  return ignoring(() => {
    // An interrupted reading leaves its note until the next one.
    if (Math.abs(nowMs - statSync(notePath(folder)).mtimeMs) > STALE_AFTER_MS) return null;
    const { file, rows }: Record<string, unknown> = JSON.parse(readFileSync(notePath(folder), 'utf8'));
    return typeof file === 'string' && typeof rows === 'number' ? { file, rows } : null;
  });
}

function ignoring<Result>(work: () => Result): Result | null {
  try {
    return work();
  } catch {
    return null;
  }
}
