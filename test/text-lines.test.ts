/** The lines of a text that arrives in chunks. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { readLines } from '../src/text-lines.ts';

async function linesOf(chunks: readonly (string | Buffer)[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(Readable.from(chunks))) lines.push(line);
  return lines;
}

test('line feeds alone end a line, wherever chunks end; what follows the last one is a line, too', async () => {
  const text = '\na\r\n\n{"b":"\u2028"}\n😀\nend';
  const lines = text.split('\n');
  for (const size of [1, 2, 3, 100]) {
    const bytes = Buffer.from(text);
    const chunk = (_: unknown, at: number) => bytes.subarray(at * size, (at + 1) * size);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, chunk);
    assert.deepEqual(await linesOf(chunks), lines);
  }
  assert.deepEqual(await linesOf(['a\n']), ['a']);
  assert.deepEqual(await linesOf([]), []);
});

// Joined and split with each chunk, it would take minutes.
test('a line of 64 MB in small chunks', { timeout: 60_000 }, async () => {
  const [chunk, count] = ['x'.repeat(4096), 16_384];
  const lines = await linesOf([...Array.from({ length: count }, () => chunk), '\n', 'end']);
  const lengths = lines.map(({ length }) => length);
  assert.deepEqual(lengths, [chunk.length * count, 3]);
});
