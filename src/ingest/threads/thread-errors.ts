/** Which errors concern one file alone, and how an error crosses to the main thread's log. */
import { isLogError } from '../../history/log-error.ts';
import { errorCode } from '../../refused.ts';
import { isDiskFull } from '../../store/database-errors.ts';

/**
 * Whether an error concerns one file, so that the others can go on and this one is tried again.
 *
 * Every error of the system does, whatever its name: file systems, network shares above all, have more of them than a
 * list would hold (EBUSY, ESTALE, ETIMEDOUT, EMFILE). These alone do not: a full disk, which is waited out; what the
 * database and the log meet, which nothing can go on without; and a failed fsync, after which what was written may
 * be lost though the next one succeeds.
 */
export function isFileError(error: unknown): boolean {
  return isSystemError(error) && !isDiskFull(error) && !isLogError(error) && !isFailedSync(error);
}

/** By its name in errno.h: SQLite's codes, and Node's own (ERR_…), look otherwise. */
function isSystemError(error: unknown): boolean {
  return /^E[A-Z0-9]+$/.test(errorCode(error));
}

function isFailedSync(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'fsync';
}

/** @returns without its stack where it is no fault of the program: that would tell an operator nothing */
export function plainError(error: unknown): { message: string; code?: string; stack?: string } {
  if (!(error instanceof Error)) return { message: String(error) };
  const isExpected = isFileError(error) || isDiskFull(error);
  return {
    message: error.message,
    ...('code' in error ? { code: errorCode(error) } : {}),
    ...(isExpected || error.stack === undefined ? {} : { stack: error.stack }),
  };
}
