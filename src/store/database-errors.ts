/** Classifies errors of databases and of the files beside them, by their code. https://sqlite.org/rescode.html */
import { errorCode, isErrorCode } from '../refused.ts';

// SHMSIZE: no room for the index of the write-ahead log (-shm, 32 KiB), without which SQLite cannot even read
// (https://sqlite.org/wal.html#walindex).
export const isDiskFull = (error: unknown): boolean =>
  isErrorCode(error, 'SQLITE_FULL', 'ENOSPC', 'EDQUOT', 'SQLITE_IOERR_SHMSIZE');

/** The rows of a database contradict each other, although SQLite finds nothing wrong. */
export class DatabaseDamage extends Error {
  readonly code = 'DATABASE_DAMAGE';
}

/** A database ends before its log begins, which was compacted: a start builds it from the log. */
export class DatabaseBehind extends Error {
  readonly code = 'DATABASE_BEHIND';
}

/** Also of an error from another thread, where its class is lost. */
export const isBehind = (error: unknown): boolean => errorCode(error) === 'DATABASE_BEHIND';

/**
 * The schema format in the header of the file, and names in its schema, for which SQLite has no code of its own. The statements
 * of the program fit the schema that it wrote.
 */
const OTHER_SCHEMA = /^(unsupported file format$|no such (table|column|index): )/;

/** Whether a database does not have the content that was written. */
export function isDamage(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code.startsWith('SQLITE_CORRUPT') ||
    code === 'SQLITE_NOTADB' ||
    // A row that claims to have a gigabyte.
    code === 'SQLITE_TOOBIG' ||
    (code === 'SQLITE_ERROR' && error instanceof Error && OTHER_SCHEMA.test(error.message)) ||
    // Also from another thread, where its class is lost.
    code === 'DATABASE_DAMAGE'
  );
}

/** Whether a write may not be on the disk. */
export function isWriteLost(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'EIO' || /^SQLITE_IOERR_(DIR_)?(FSYNC|WRITE|TRUNCATE)/.test(code);
}

/** Whether this user has no permission to open the file, or to write to it. */
export function isForbidden(error: unknown): boolean {
  const code = errorCode(error);
  return ['EACCES', 'EPERM'].includes(code) || /^SQLITE_(CANTOPEN|READONLY)/.test(code);
}
