/** Asks on a terminal before something is done that cannot be undone. */
import { createInterface } from 'node:readline';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Goes on when `word` was typed. The question goes to stderr: stdout is for what the command prints.
 *
 * @param what will be done, in whole sentences
 * @throws Refused `usage` where there is no terminal to ask on, `failed` when something else was typed
 */
export async function confirm(
  what: string,
  word: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (input.isTTY !== true || output.isTTY !== true) {
    throw new Refused(
      'usage',
      `${what} There is no terminal to ask on, so nothing was done: confirm it with --yes.`,
    );
  }
  const lines = createInterface({ input, output, terminal: false });
  output.write(`${printable(what)}\nType ${printable(word)} to go on: `);
  // Closed without a line: Ctrl-D.
  const typed = await new Promise<string>((resolve) => {
    lines.once('line', resolve);
    lines.once('close', () => resolve(''));
  });
  lines.close();
  if (typed.trim() !== word) throw new Refused('failed', 'not confirmed: nothing was done.');
}
