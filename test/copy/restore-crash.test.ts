/** A crash during a restore leaves the old state or the new one, and the next command or start completes it. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { completeRestore } from '../../src/store/complete-restore.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { assertFailed } from '../support/command.ts';
import { patched } from '../support/patched-fs.ts';
import {
  assertSame,
  backup,
  contentOf,
  copyOf,
  detectionsIn,
  restored,
  run,
  served,
  stopped,
  work,
} from '../support/restore.ts';

/** Ends work where it would call fsync after some calls. @returns whether it came so far */
function isEnded(work: () => void, syncs: number): boolean {
  let left = syncs;
  using _ = patched('fsyncSync', (sync) => (file) => {
    left -= 1;
    if (left < 0) throw new Error('a crash');
    sync(file);
  });
  try {
    work();
  } catch {}
  return left < 0;
}

describe('a crash', () => {
  test('between any two steps of installing the new state is completed by the next restore', () => {
    const data = copyOf(stopped, 'steps');
    // A database with a write-ahead log, as a crash of the appliance leaves it.
    writeFileSync(join(data, 'detections.db-wal'), 'log');
    writeFileSync(join(data, 'detections.db-damage'), 'noted');
    const incoming = join(data, 'incoming-20261121T101000Z');
    for (const name of ['log', 'copied']) mkdirSync(join(incoming, name), { recursive: true });
    for (const name of ['detections.db', 'access.db', 'secret', 'log/1', 'copied/1.json'])
      writeFileSync(join(incoming, name), `new ${name}`);
    const whole = copyOf(data, 'steps-whole');
    assert.equal(completeRestore(dataFolder(whole)), join(whole, 'replaced-20261121T101000Z'));
    const expected = contentOf(whole);
    assert.ok(expected.has('/replaced-20261121T101000Z/detections.db-wal'));
    for (const name of ['log/1', 'copied/1.json']) assert.equal(expected.get(`/${name}`), `new ${name}`);
    let isCrashed = true;
    for (let syncs = 0; isCrashed; syncs += 1) {
      const copy = copyOf(data, `syncs-${syncs}`);
      const complete = () => completeRestore(dataFolder(copy));
      isCrashed = isEnded(complete, syncs);
      assert.equal(complete() === undefined, !isCrashed);
      assertSame(contentOf(copy), expected, `after ${syncs} syncs`);
      assert.equal(complete(), undefined, 'nothing may be left to do');
      assert.ok(isCrashed || syncs > 16);
      rmSync(copy, { recursive: true });
    }
  });

  test('during a restore is completed by the next start or restore; commands wait for it', async () => {
    const data = copyOf(stopped, 'half');
    const incoming = join(data, 'incoming-20261121T101000Z');
    const made = join(work, 'made');
    restored(backup, '--data', made);
    mkdirSync(incoming);
    for (const name of ['detections.db', 'access.db', 'secret', 'log', 'copied'])
      cpSync(join(made, name), join(incoming, name), { recursive: true });
    for (const command of ['key list', 'ingest status', `backup ${join(work, 'half-backup')}`]) {
      const ended = run(...command.split(' '), '--data', data);
      assertFailed(ended, 78, /a restore into .* was interrupted.*wirewatch serve/s);
    }
    const again = copyOf(data, 'half-again');
    restored(backup, '--replace', '--data', again);
    assert.equal(detectionsIn(again), 50);
    // What a kill before the decision leaves.
    mkdirSync(join(again, '.incoming'));
    restored(backup, '--replace', '--data', again);
    assert.equal(detectionsIn(again), 50);
    assert.doesNotMatch(readdirSync(again).join('\n'), /^(\.incoming|incoming-)/m);
    const log = await served(data);
    assert.ok(log.some(({ msg }) => msg === 'completed an interrupted restore'));
    assert.equal(detectionsIn(join(data, 'replaced-20261121T101000Z')), 51);
  });
});
