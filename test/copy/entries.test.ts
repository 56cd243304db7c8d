/** The bytes of a log as entries: what does not follow, or lacks a frame, is damage. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { EntryChain, type Frame, framesOf } from '../../src/log/frame.ts';
import { listSegments } from '../../src/log/segment.ts';
import { createHistory, type History, rowsFrom } from '../support/history.ts';

let history: History;
let bytes: Buffer;
let frames: Frame[];
before(async () => {
  history = await createHistory();
  for (let at = 1; at <= 3; at += 1) history.apply(rowsFrom(at, 2));
  const [{ path } = { path: '' }] = listSegments(history.folder.log);
  bytes = readFileSync(path);
  frames = [...framesOf(bytes, 'it')];
});
after(() => history.delete());

/** @returns the numbers of the entries */
function chained(some: readonly Frame[], chain = new EntryChain(null, 1)): number[] {
  return some.flatMap((frame) => chain.add(frame).commit?.entry ?? []);
}

test('a content has whole frames', () => {
  assert.deepEqual(Buffer.concat(frames.map((frame) => frame.bytes)), bytes);
  for (const end of [-1, -40])
    assert.throws(() => [...framesOf(bytes.subarray(0, end), 'it')], /it has a damaged frame/);
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
  assert.deepEqual(chained(rest.slice(second), new EntryChain(undefined, 2)), [2, 3]);
});
