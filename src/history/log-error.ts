/** What can be wrong with a log. */
import { errorCode } from '../refused.ts';

/** The log contradicts itself, or the database: nothing that follows the place can be relied on. */
export class LogDamage extends Error {
  readonly code = 'LOG_DAMAGE';
}

/** The system refused to read or write the log: it concerns all of ingest, not one file. */
export class LogFailure extends Error {
  readonly code: string;
  /** The segment, or the folder of the log. */
  readonly path: string;
  /** Whether what was written may not be on the disk. */
  readonly isWriteLost: boolean;
  /** Whether the disk has not given what was written; a file that cannot be opened, say for want of rights, may be whole. */
  readonly isOfContent: boolean;

  constructor(doing: string, path: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`cannot ${doing} ${path}: ${reason}`, { cause });
    this.name = 'LogFailure';
    this.path = path;
    const code = errorCode(cause);
    const syscall = cause instanceof Error && 'syscall' in cause ? cause.syscall : undefined;
    this.isWriteLost = code === 'EIO' || syscall === 'fsync' || syscall === 'ftruncate';
    this.isOfContent = code === 'EIO' || syscall === 'read';
    // Whatever the reason was, a full disk too: to wait for room and try again would not bring back what is lost.
    this.code = this.isWriteLost ? 'EIO' : code;
  }
}

/** Whether the log, and not a file that is ingested, is what failed. */
export function isLogError(error: unknown): boolean {
  return error instanceof LogDamage || error instanceof LogFailure;
}
