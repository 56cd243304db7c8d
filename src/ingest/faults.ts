/** Which faults concern one file alone, and how a fault crosses to the main thread's log. */
import { errorCode } from '../refused.ts';
import { isDiskFull } from '../store/database.ts';

const FILE_ERRORS = [
  'EACCES',
  'EEXIST',
  'EPERM',
  'EROFS',
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'ENXIO',
  'EISDIR',
  'ENAMETOOLONG',
];

/** Faults of one file, not of the disk or the database: the others can go on. */
export function isFileError(error: unknown): boolean {
  const code = errorCode(error);
  return FILE_ERRORS.includes(code);
}

/** @returns without its stack where it is no fault of the program: that would tell an operator nothing */
export function plainError(error: unknown): { message: string; code?: string; stack?: string } {
  if (!(error instanceof Error)) return { message: String(error) };
  const isExpected = isFileError(error) || isDiskFull(error);
  return {
    message: error.message,
    ...('code' in error ? { code: String(error.code) } : {}),
    ...(isExpected || error.stack === undefined ? {} : { stack: error.stack }),
  };
}
