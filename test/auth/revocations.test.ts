import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { emptyRevocations, noteEnded, prepareRevocations, readEnded } from '../../src/auth/denials.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { testFolder } from '../support/test-folder.ts';

const ENDED = [
  { kind: 'key', id: 'aaaaaaaa', at: 1_700_000_000_000 },
  { kind: 'account', id: 'nordbild', at: 1_700_000_000_001 },
  { kind: 'key', id: 'cccccccc', at: 1_700_000_000_002 },
] as const;

/** A data folder with this file. */
function prepared() {
  const root = testFolder();
  const folder = dataFolder(root);
  prepareRevocations(folder);
  return { folder, path: join(root, 'revocations') };
}

test('what was noted is read in its order, and the file never grows', () => {
  const { folder, path } = prepared();
  const { size } = statSync(path);
  assert.deepEqual(readEnded(folder), []);
  for (const ended of ENDED) noteEnded(folder, ended);
  assert.deepEqual(readEnded(folder), ENDED);
  prepareRevocations(folder);
  assert.deepEqual(readEnded(folder), ENDED);
  emptyRevocations(folder);
  assert.deepEqual(readEnded(folder), []);
  assert.equal(statSync(path).size, size);
});

test('a file that cannot be emptied is removed, until the next start', {
  skip: !existsSync('/dev/full') && 'this system has no /dev/full',
}, () => {
  const { folder, path } = prepared();
  rmSync(path);
  symlinkSync('/dev/full', path);
  emptyRevocations(folder);
  assert.deepEqual([existsSync(path), readEnded(folder)], [false, []]);
  prepareRevocations(folder);
  noteEnded(folder, ENDED[0] ?? assert.fail());
  assert.deepEqual(readEnded(folder), ENDED.slice(0, 1));
});

test('a damaged byte costs the line it is in, and no other', () => {
  const { folder, path } = prepared();
  for (const ended of ENDED) noteEnded(folder, ended);
  const whole = readFileSync(path);
  const end = whole.lastIndexOf('\n') + 1;
  for (let at = 0; at < end; at += 1)
    for (const byte of [0x0a, (whole[at] ?? 0) ^ 1]) {
      const damaged = Buffer.from(whole);
      damaged[at] = byte;
      writeFileSync(path, damaged);
      const line = whole.subarray(0, at).filter((one) => one === 0x0a).length;
      const isHarmless = whole[at] === 0x0a || byte === whole[at];
      const left = ENDED.filter((_, index) => isHarmless || index !== line);
      assert.deepEqual(readEnded(folder), left, `byte ${at} is ${byte}`);
    }
});

test('a torn line is overwritten by the next one', () => {
  const { folder, path } = prepared();
  for (const ended of ENDED.slice(0, 2)) noteEnded(folder, ended);
  const torn = readFileSync(path);
  const from = torn.indexOf('\n') + 1;
  torn.fill(' ', from + 20, torn.lastIndexOf('\n') + 1);
  writeFileSync(path, torn);
  noteEnded(folder, { kind: 'key', id: 'cccccccc', at: 1_700_000_000_002 });
  assert.deepEqual(readEnded(folder), [ENDED[0], ENDED[2]]);
});

test('a full file is an error, and keeps what it has', () => {
  const { folder, path } = prepared();
  noteEnded(folder, { kind: 'key', id: 'aaaaaaaa', at: 1_700_000_000_000 });
  const line = readFileSync(path, 'utf8').trimEnd();
  const lines = Math.floor(statSync(path).size / (line.length + 1));
  writeFileSync(path, `${line}\n`.repeat(lines));
  assert.throws(() => noteEnded(folder, { kind: 'key', id: 'bbbbbbbb', at: 1 }), { message: /is full$/ });
  assert.ok(lines > 500);
  assert.equal(readEnded(folder).length, lines);
});
