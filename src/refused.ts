/**
 * The one exception that is expected: something asked for is refused, with a reason for the one who asked.
 *
 * Everything else that is thrown is a fault of the program or its surroundings. For HTTP, one table turns a
 * code into a status (contract: Errors); for commands, one turns it into an exit code.
 */
export type RefusedCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'content_too_large'
  | 'rate_limited'
  | 'daily_allowance'
  | 'unavailable'
  /** A command was used wrongly: exit code 2. */
  | 'usage'
  /** The configuration or the data folder is wrong: exit code 78. */
  | 'configuration'
  /** What the operator asked for cannot be done as things stand: exit code 1. */
  | 'failed';

export interface RefusedOptions extends ErrorOptions {
  /** When a client may ask again, at least 1: the `Retry-After` of the answer. */
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

/** What the system's commonest codes mean, for those who do not know them. */
const WORDS: ReadonlyMap<unknown, string> = new Map([
  ['EACCES', 'this user has no right to it'],
  ['EADDRINUSE', 'another program listens there'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
  ['EISDIR', 'it is a folder'],
  ['ENOENT', 'there is no such file or folder'],
  ['ENOSPC', 'the disk is full'],
  ['ENOTDIR', 'it is no folder'],
  ['ENOTFOUND', 'the name cannot be resolved'],
  ['EPERM', 'the system does not allow it'],
  ['EROFS', 'it is mounted read-only'],
]);

/**
 * What anything that was thrown says, in words.
 *
 * @param told the path that the sentence names already; another one is added
 */
export function reasonOf(error: unknown, told = ''): string {
  if (!(error instanceof Error)) return String(error);
  const words = 'syscall' in error && 'code' in error ? WORDS.get(error.code) : undefined;
  if (words === undefined) return error.message;
  return 'path' in error && error.path !== told ? `${words} (${error.path})` : words;
}

/** The code by which Node, SQLite and TLS name an error; empty where there is none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

export function isErrorCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(errorCode(error));
}

const PROBLEMS_SHOWN_MAX = 100;

/** Several problems as one detail. @param heading said behind their number, such as `settings are wrong` */
export function listed(problems: readonly string[], heading: string): string {
  const [first] = problems;
  if (problems.length === 1 && first !== undefined) return first;
  const lines = problems.slice(0, PROBLEMS_SHOWN_MAX).map((problem) => `\n  ${problem}`);
  const more = problems.length - lines.length;
  return `${problems.length} ${heading}:${lines.join('')}${more > 0 ? `\n  and ${more} more` : ''}`;
}
