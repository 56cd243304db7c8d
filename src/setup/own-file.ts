/**
 * Files that setup makes, and knows again: their first line has the SHA-256 of all that follows. What somebody has
 * changed since, or made themselves, is never written over and never removed.
 */
import { createHash, randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Refused, reasonOf } from '../refused.ts';

/** `own`: as it was made; `changed`: made by setup, and changed since; `foreign`: made by somebody else. */
export type FileState = 'absent' | 'own' | 'changed' | 'foreign';

const MARK =
  '# Made by "wirewatch setup", whose --undo removes it unless something below is changed. SHA-256 ';
const MARKED = new RegExp(`^${MARK}([0-9a-f]{64})\n`);
const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;

/** A text that begins with a line of comment by which {@link stateOf} knows it again. */
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

/** Whether setup once made the file with this text, whatever became of it since. */
export function wasMadeWith(file: string, text: string): boolean {
  const [, hash] = MARKED.exec(refusing('read', file, () => readFileSync(file, 'utf8'))) ?? [];
  return hash === sha256(text);
}

/** Puts a file in its place, whole, with the folders above it. */
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
      `cannot ${operation} ${file}: ${reason}. Run it as root; or see --root and --no-service, with "wirewatch setup --help".`,
      { cause: error },
    );
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
