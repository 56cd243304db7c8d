/**
 * Files that setup writes and recognizes: their first line has the SHA-256 of the rest. Setup never overwrites and never
 * removes a file that was modified since, or that it did not write.
 */
import { createHash, randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Refused, reasonOf } from '../refused.ts';

/** `own`: as setup wrote it; `changed`: written by setup and modified since; `foreign`: not written by setup. */
export type FileState = 'absent' | 'own' | 'changed' | 'foreign';

const MARK =
  '# Written by "wirewatch setup"; "wirewatch setup --undo" removes this file unless it was modified. SHA-256 ';
const MARKED = new RegExp(`^${MARK}([0-9a-f]{64})\n`);
const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;

/** A text that begins with a comment line by which {@link stateOf} recognizes it. */
export function marked(text: string): string {
  return `${MARK}${sha256(text)}\n${text}`;
}

export function stateOf(file: string): FileState {
  const entry = refusing('read', file, () => lstatSync(file, { throwIfNoEntry: false }));
  if (entry === undefined) return 'absent';
  if (!entry.isFile()) return 'foreign';
  const text = refusing('read', file, () => readFileSync(file, 'utf8'));
  const mark = MARKED.exec(text);
  if (mark === null) return 'foreign';
  return sha256(text.slice(mark[0].length)) === mark[1] ? 'own' : 'changed';
}

/** Whether setup once wrote the file with this text, even if it was modified since. */
export function wasMadeWith(file: string, text: string): boolean {
  const [, hash] = MARKED.exec(refusing('read', file, () => readFileSync(file, 'utf8'))) ?? [];
  return hash === sha256(text);
}

/** Writes a file atomically, and creates the folders above it. */
export function placeFile(file: string, text: string): void {
  refusing('write', file, () => {
    mkdirSync(path.dirname(file), { recursive: true, mode: FOLDER_MODE });
    const draft = `${file}.${randomUUID()}`;
    try {
      writeFileSync(draft, text, { flag: 'wx', mode: FILE_MODE });
      renameSync(draft, file);
    } finally {
      rmSync(draft, { force: true });
    }
  });
}

export function removeFile(file: string): void {
  refusing('remove', file, () => rmSync(file));
}

function refusing<Result>(operation: string, file: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    const reason = reasonOf(error);
    throw new Refused(
      'failed',
      `cannot ${operation} ${file}: ${reason}. Run the command as root, or see --root and --no-service in: wirewatch setup --help`,
      { cause: error },
    );
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
