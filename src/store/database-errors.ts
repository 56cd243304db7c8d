/**
 * What an error of a database, or of the files beside it, means: judged by its code alone, without the driver.
 *
 * https://sqlite.org/rescode.html
 */
import { errorCode, isErrorCode } from '../refused.ts';

/** Whether an error says that the disk is full. */
export function isDiskFull(error: unknown): boolean {
  // The last one: there is no room for the index of the write-ahead log (-shm, 32 KiB), without which SQLite cannot
  // even read (https://sqlite.org/wal.html#walindex).
  return isErrorCode(error, 'SQLITE_FULL', 'ENOSPC', 'EDQUOT', 'SQLITE_IOERR_SHMSIZE');
}

/** What a database holds contradicts itself, though SQLite found nothing wrong with it. */
export class DatabaseDamage extends Error {
  readonly code = 'DATABASE_DAMAGE';
}

/** Whether an error says that a database's content is not what was written. */
export function isDamage(error: unknown): boolean {
  const code = errorCode(error);
  return (
    code.startsWith('SQLITE_CORRUPT') ||
    code === 'SQLITE_NOTADB' ||
    // Nothing here is anywhere near a gigabyte: a record says that it is.
    code === 'SQLITE_TOOBIG' ||
    error instanceof DatabaseDamage
  );
}

/** Whether an error says that something that was written may not be on the disk. */
export function isWriteLost(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'EIO' || /^SQLITE_IOERR_(DIR_)?(FSYNC|WRITE|TRUNCATE)/.test(code);
}

/** Whether an error says that a file may not be opened, or not be written to, by this user. */
export function isForbidden(error: unknown): boolean {
  const code = errorCode(error);
  return ['EACCES', 'EPERM'].includes(code) || /^SQLITE_(CANTOPEN|READONLY)/.test(code);
}
