/** The lines of a text, split at line feeds alone: JSON may contain U+2028 and U+2029, where node:readline splits, too. */
import type { Readable } from 'node:stream';

export async function* readLines(input: Readable): AsyncIterable<string> {
  // What follows the last line feed: joined with each chunk, a long line would take quadratic time.
  let rest: string[] = [];
  for await (const text of input.setEncoding('utf8')) {
    const [first, ...others]: string[] = text.split('\n');
    rest.push(first ?? '');
    if (others.length === 0) continue;
    yield rest.join('');
    rest = others.splice(-1);
    yield* others;
  }
  const last = rest.join('');
  if (last !== '') yield last;
}
