/** Which errors concern one file alone, and how an error is logged. */
import { errorCode, reasonOf } from '../refused.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { isLogError } from '../store/log-errors.ts';

/**
 * Whether an error concerns one file: it is tried again later, and the others go on. Every error of the operating system does,
 * but for a full disk, which is waited out, errors of the database and the log, and a failed fsync, after which data may be
 * lost even if the next one succeeds.
 */
export function isFileError(error: unknown): boolean {
  // By its name in errno.h: the codes of SQLite and Node (ERR_…) contain an underscore.
  const isSystemError = /^E[A-Z0-9]+$/.test(errorCode(error));
  const isFailedSync = error instanceof Error && 'syscall' in error && error.syscall === 'fsync';
  return isSystemError && !isDiskFull(error) && !isLogError(error) && !isFailedSync;
}

/** For the log: without a stack if it is no fault of the program. */
export function plainError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) };
  const isExpected = isFileError(error) || isDiskFull(error);
  return {
    message: error.message,
    ...('code' in error ? { code: errorCode(error) } : {}),
    ...(isExpected || error.stack === undefined ? {} : { stack: error.stack }),
  };
}

/** An error of one file in plain words. @throws any other error */
export function reasonOfFile(error: unknown): string {
  if (!isFileError(error)) throw error;
  return reasonOf(error);
}

/** What the work returns; `otherwise` after an error of files, which somebody else reports or tries again. @throws any other */
export function unlessFileError<Result>(otherwise: Result, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isFileError(error)) throw error;
    return otherwise;
  }
}
