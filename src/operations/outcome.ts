/** What an operation did: for the command line, the console and the administration API. */

export interface Outcome<Value = unknown> {
  /** As `--json` prints it. */
  readonly value: Value;
  /** What was done, in a sentence. */
  readonly done?: string;
  /** What comes next, in paragraphs. */
  readonly next?: readonly (string | false | null)[];
  /** What its user must know besides, whatever is printed. */
  readonly warning?: string | null;
  /** Whether it did not do all that was asked: exit code 1. */
  readonly failed?: boolean;
}
