/** The bytes of a log as entries: what does not follow, or lacks a frame, is damage. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { EntryChain, framesOf, type RawFrame } from '../../src/copy/entries.ts';
import { listSegments } from '../../src/log/segment.ts';
import { createHistory, type History, rowsFrom } from '../support/history.ts';

let history: History;
let bytes: Buffer;
let frames: RawFrame[];
before(async () => {
  history = await createHistory();
  for (let at = 1; at <= 3; at += 1) history.apply(rowsFrom(at, 2));
  const [{ path } = { path: '' }] = listSegments(history.folder.log);
  bytes = readFileSync(path);
  frames = await read([bytes]);
});
after(() => history.delete());

async function read(chunks: readonly Buffer[]): Promise<RawFrame[]> {
  const found: RawFrame[] = [];
  for await (const frame of framesOf(chunks, 'it')) found.push(frame);
  return found;
}

/** @returns the numbers of the entries */
function chained(some: readonly RawFrame[], chain = new EntryChain(null)): number[] {
  return some.flatMap((frame) => chain.add(frame)?.entry ?? []);
}

test('frames are the same, wherever the bytes are cut', async () => {
  for (const size of [1, 7, 1000]) {
    const count = Math.ceil(bytes.length / size);
    const chunks = Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
    assert.deepEqual(await read(chunks), frames, `${size}`);
  }
  await assert.rejects(read([bytes.subarray(0, -1)]), /it is damaged at byte \d+/);
});

test('entries are whole, and each follows the one before', () => {
  const [header, ...rest] = frames;
  assert.equal(header?.kind, 'header');
  assert.deepEqual(chained(rest), [1, 2, 3]);
  assert.throws(() => chained(frames), /a header stands between entries/);
  const lines = rest.findIndex(({ kind }) => kind === 'lines');
  assert.throws(() => chained(rest.toSpliced(lines, 1)), /frames of entry 1 are missing/);
  const second = rest.findIndex(({ kind }) => kind === 'commit') + 1;
  const third = rest.findIndex(({ kind }, at) => kind === 'commit' && at >= second) + 1;
  assert.throws(() => chained(rest.toSpliced(second, third - second)), /entry 3 does not follow entry 1/);
  assert.throws(() => chained(rest.slice(second)), /begin|first/i);
  assert.deepEqual(chained(rest.slice(second), new EntryChain(undefined)), [2, 3]);
});
