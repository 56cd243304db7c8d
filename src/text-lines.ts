/** The lines of a text, split at line feeds alone: JSON may contain U+2028 and U+2029, where node:readline splits, too. */
import type { Readable } from 'node:stream';

export async function* readLines(input: Readable): AsyncIterable<string> {
  let rest = '';
  for await (const text of input.setEncoding('utf8')) {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}
