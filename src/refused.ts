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

/** What anything that was thrown says, in words. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
