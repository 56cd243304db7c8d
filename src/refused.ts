/**
 * The only expected exception: a request or a command is refused, with a reason for its sender.
 *
 * Any other exception is an error of the program or its environment. `problem-titles.ts` maps the codes to HTTP statuses,
 * `cli/program.ts` to exit codes.
 */
import { constants } from 'node:os';
import type { ProblemCode } from './problem-titles.ts';

export type RefusedCode =
  | Exclude<ProblemCode, 'internal'>
  /** A command was used wrongly: exit code 2. */
  | 'usage'
  /** The configuration or the data folder is wrong: exit code 78. */
  | 'configuration'
  /** The command is not possible now: exit code 1. */
  | 'failed';

export interface RefusedOptions extends ErrorOptions {
  /** The `Retry-After` of the response, at least 1. */
  readonly retryAfterSeconds?: number;
}

export class Refused extends Error {
  readonly code: RefusedCode;
  readonly retryAfterSeconds: number | null;

  /** @param detail plain English: what was wrong, what was expected, what to do next; never a secret */
  constructor(code: RefusedCode, detail: string, options?: RefusedOptions) {
    super(detail, options);
    this.name = 'Refused';
    this.code = code;
    this.retryAfterSeconds = options?.retryAfterSeconds ?? null;
  }
}

export const misused = (detail: string) => new Refused('usage', detail);
export const failed = (detail: string, options?: RefusedOptions) => new Refused('failed', detail, options);
export const misconfigured = (detail: string, options?: RefusedOptions) =>
  new Refused('configuration', detail, options);

/** The detail of an error that is {@link Refused}. @throws any other */
export function reasonIfRefused(error: unknown): string {
  if (!(error instanceof Refused)) throw error;
  return error.message;
}

/** The most common error codes of the system in words. */
const WORDS: ReadonlyMap<unknown, string> = new Map([
  ['EACCES', 'permission denied'],
  ['EADDRINUSE', 'another program is using this address'],
  ['EADDRNOTAVAIL', 'this machine does not have this address'],
  ['ECONNREFUSED', 'connection refused: nothing is listening there'],
  ['ECONNRESET', 'connection reset'],
  ['EDQUOT', 'the disk quota is exceeded'],
  ['EISDIR', 'it is a folder, not a file'],
  ['ENOENT', 'no such file or folder'],
  ['ENOSPC', 'the disk is full'],
  ['ENOTDIR', 'it is not a folder'],
  ['ENOTFOUND', 'the host name cannot be resolved'],
  ['EPERM', 'operation not permitted'],
  ['EROFS', 'the file system is read-only'],
  ['ETIMEDOUT', 'connection timed out'],
  ['ESTALE', 'the file server no longer has this file (stale file handle)'],
]);

/**
 * The message of an error, in plain words.
 * @param namedPath the path that the sentence already names; a different one is added
 */
export function reasonOf(error: unknown, namedPath = ''): string {
  if (!(error instanceof Error)) return String(error);
  const words = 'syscall' in error ? WORDS.get(errorCode(error)) : undefined;
  if (words === undefined) return error.message;
  return 'path' in error && error.path !== namedPath ? `${words} (${error.path})` : words;
}

/** The same for the middle of a text, which goes on with a full stop of its own. */
export const clauseOf = (error: unknown, namedPath = '') => reasonOf(error, namedPath).replace(/\.$/, '');

/** Node's code for system errors that it has no name for, such as ESTALE and EDQUOT on Linux. */
const NAMELESS = /^Unknown system error -(\d+)$/;
const NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));

/** The error code of the system, SQLite, Node or TLS; empty if there is none. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [, number] = NAMELESS.exec(code) ?? [];
  return NAMES.get(Number(number)) ?? code;
}

export const isErrorCode = (error: unknown, ...codes: string[]): boolean => codes.includes(errorCode(error));

/** What the work returns; `otherwise` after an error with one of these codes. @throws any other */
export function unlessCode<Result, Otherwise>(
  otherwise: Otherwise,
  work: () => Result,
  ...codes: string[]
): Result | Otherwise {
  try {
    return work();
  } catch (error) {
    if (isErrorCode(error, ...codes)) return otherwise;
    throw error;
  }
}

/** What the work returns; `otherwise` after any error. */
export function unlessError<Result, Otherwise>(otherwise: Otherwise, work: () => Result): Result | Otherwise {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

const PROBLEMS_SHOWN_MAX = 100;

/** Several problems as one detail. @param heading follows their number, such as `settings are invalid` */
export function listed(problems: readonly string[], heading: string): string {
  const [first] = problems;
  if (problems.length === 1 && first !== undefined) return first;
  const lines = problems.slice(0, PROBLEMS_SHOWN_MAX).map((problem) => `\n  ${problem}`);
  const more = problems.length - lines.length;
  return `${problems.length} ${heading}:${lines.join('')}${more > 0 ? `\n  and ${more} more` : ''}`;
}
