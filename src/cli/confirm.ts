/** Asks for confirmation on a terminal before something irreversible is done. */
import { createInterface } from 'node:readline';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';

export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Returns when `word` was typed. The question goes to stderr: stdout is for the result of the command.
 * @param what will be done, in full sentences
 * @throws Refused `usage` without a terminal to ask on, `failed` if something else was typed
 */
export async function confirm(
  what: string,
  word: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (input.isTTY !== true || output.isTTY !== true)
    throw new Refused('usage', `${what} Not confirmed: add --yes.`);
  const lines = createInterface({ input, output, terminal: false });
  output.write(`${printable(what)}\nType ${printable(word)} to confirm: `);
  // Closed without a line: Ctrl-D.
  const typed = await new Promise<string>((resolve) => {
    lines.once('line', resolve);
    lines.once('close', () => resolve(''));
  });
  lines.close();
  if (typed.trim() !== word) throw new Refused('failed', 'not confirmed; nothing was done.');
}
