/** The two errors of a log: its content is wrong, or the system cannot read or write it. */
import { errorCode } from '../refused.ts';

/** The log contradicts itself or the database: nothing after that place can be relied on. */
export class LogDamage extends Error {
  readonly code = 'LOG_DAMAGE';
}

/** The system cannot read or write the log. This concerns all of ingest, not one file. */
export class LogFailure extends Error {
  readonly code: string;
  readonly path: string;
  /** Whether the disk failed to return content. A file that cannot be opened, for lack of permission, may be intact. */
  readonly isOfContent: boolean;

  constructor(doing: string, path: string, cause: unknown) {
    super(`cannot ${doing} ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'LogFailure';
    this.path = path;
    const code = errorCode(cause);
    const syscall = cause instanceof Error && 'syscall' in cause ? cause.syscall : undefined;
    const isWriteLost = code === 'EIO' || syscall === 'fsync' || syscall === 'ftruncate';
    this.isOfContent = code === 'EIO' || syscall === 'read';
    // Even on a full disk: waiting for room and retrying would not bring back a lost write.
    this.code = isWriteLost ? 'EIO' : code;
  }
}

/** Runs calls of the file system for the log. @throws LogFailure */
export function onLog<Result>(doing: string, path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new LogFailure(doing, path, error);
  }
}

/** Whether the log failed, and not a file that is ingested. */
export const isLogError = (error: unknown): boolean =>
  error instanceof LogDamage || error instanceof LogFailure;

/** What the work returns; `otherwise` after an error of the log. @throws any other */
export function unlessLogError<Result, Otherwise>(otherwise: Otherwise, work: () => Result) {
  try {
    return work();
  } catch (error) {
    if (!isLogError(error)) throw error;
    return otherwise;
  }
}
