/** `subscription remove` and `compact`, killed at each step on the log and on the spare copy of access.db, and repeated. */
import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { findSubscription, isBeingRemoved } from '../../src/auth/subscriptions.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { recoverDetections } from '../../src/log/recover.ts';
import { listSegments } from '../../src/log/segment.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { openAccess } from '../support/access.ts';
import { createInstallation, type Installation, putFile } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { assertSameContent, contentOfDetections } from '../support/database-content.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { preloaded } from '../support/preload.ts';
import { runProgram } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

/**
 * Kills the program before its n-th step on a segment, the draft of a snapshot, or the spare copy, which follows each
 * commit of access.db.
 */
const KILL = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  let left = Number(process.env.WIREWATCH_TEST_KILL_AT);
  const pathOf = (file) => typeof file === 'number' ? fs.readlinkSync('/proc/self/fd/' + file) : String(file);
  for (const name of ['openSync', 'writeFileSync', 'writeSync', 'fsyncSync', 'renameSync', 'rmSync']) {
    const real = fs[name];
    fs[name] = (file, ...args) => {
      const isStep = name !== 'openSync' || args[0] === 'w';
      const isOurs = /\\/(log\\/(?:draft|(?:draft\\/)?\\d+(?:-snapshot)?\\.zst)|\\.access\\.db-spare)/.test(pathOf(file));
      if (isStep && isOurs) left -= 1;
      if (isStep && isOurs && left === 0) process.kill(process.pid, 'SIGKILL');
      return real(file, ...args);
    };
  }
  syncBuiltinESMExports();
`;
const { NODE_OPTIONS } = preloaded(KILL);

/** Creates segments with rows of 7002, each closed by the removal of another subscription. */
async function fill(installation: Installation): Promise<void> {
  const serving = await installation.serve();
  for (const subscription of [8001, 8002]) {
    installation.cli(['subscription', 'add', String(subscription), '--account', 'agency']);
    const rows = [7001, 7002, subscription, 7002].map((id) => newRow({ subscription_id: id }));
    const name = fileName('newswire', nextWindowMs());
    putFile(installation.drop, name, ndjson(rows));
    await serving.logged(`${name} to be applied`, (line) => line.file === name);
    installation.cli(['subscription', 'remove', String(subscription), '--yes']);
  }
  assert.equal(await serving.stop(), 0);
}

function linesOf(data: string, subscription: number): number {
  const beginning = new RegExp(`^\\{"\\w+":"[ti]\\.${subscription}\\.`);
  return [...entriesAfter(join(data, 'log'), null)]
    .flatMap(({ part }) => part.lines)
    .filter((line) => beginning.test(line)).length;
}

function isFree(data: string, subscription: number): boolean {
  using access = openAccess(data);
  return findSubscription(access, subscription) === null && !isBeingRemoved(access, subscription);
}

/** Nothing is left of a compaction. */
function assertTidy(data: string): void {
  const names = readdirSync(join(data, 'log'));
  assert.deepEqual(
    names.sort(),
    listSegments(join(data, 'log')).map(({ path }) => basename(path)),
  );
}

test('a compaction, killed before each step, leaves the old log or the new one', {
  skip: NO_PRELOAD,
}, async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  const work = testFolder();
  try {
    await fill(installation);
    const serving = await installation.serve();
    const name = fileName('newswire', nextWindowMs());
    putFile(installation.drop, name, ndjson([newRow()]));
    await serving.logged(`${name} to be applied`, (line) => line.file === name);
    assert.equal(await serving.stop(), 0);
    const namesIn = (data: string) => listSegments(join(data, 'log')).map(({ path }) => basename(path));
    const names = namesIn(installation.data);
    const content = contentOfDetections(installation.data);
    const seen = { old: 0, new: 0 };
    let steps = 0;
    for (let isKilled = true; isKilled; steps += 1) {
      const data = join(work, 'data');
      rmSync(data, { recursive: true, force: true });
      copyFolder(installation.data, data);
      const settings = { NODE_OPTIONS, WIREWATCH_TEST_KILL_AT: String(steps + 1) };
      isKilled = (await runProgram(['compact', '--data', data], settings).ended) === null;
      const isNew = namesIn(data)[0] !== names[0];
      seen[isNew ? 'new' : 'old'] += 1;
      if (isNew) assert.equal(namesIn(data).length, 1);
      else assert.deepEqual(namesIn(data), names);
      // Only the log says what the database must be.
      for (const name of readdirSync(data)) if (/^detections\.db/.test(name)) rmSync(join(data, name));
      const made = await recoverDetections({
        folder: dataFolder(data),
        program: 'test',
        onProgress: () => {},
        between: async () => {},
      });
      made.log.close();
      made.db.close();
      assertSameContent(contentOfDetections(data), content, `killed before step ${steps + 1}`);
      assertTidy(data);
    }
    assert.ok(seen.old > 5 && seen.new > 2, JSON.stringify(seen));
  } finally {
    installation.remove();
  }
});

test('killed before each step, a removal is completed by the next command, and the log gives an equal database', {
  skip: NO_PRELOAD,
}, async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  const work = testFolder();
  try {
    await fill(installation);
    assert.equal(linesOf(installation.data, 7002), 4);
    let steps = 0;
    for (let isKilled = true; isKilled; steps += 1) {
      const data = join(work, 'data');
      rmSync(data, { recursive: true, force: true });
      copyFolder(installation.data, data);
      const remove = ['subscription', 'remove', '7002', '--yes', '--data', data, '--drop', installation.drop];
      const settings = { NODE_OPTIONS, WIREWATCH_TEST_KILL_AT: String(steps + 1) };
      isKilled = (await runProgram(remove, settings).ended) === null;
      // Once the number is free, nothing is left that its next owner could read.
      if (isFree(data, 7002)) assert.equal(linesOf(data, 7002), 0, `killed before step ${steps + 1}`);
      const again = runProgram(remove);
      const code = await again.ended;
      assert.ok(code === 0 || /subscription 7002 does not exist/.test(again.stderr()), again.stderr());
      assert.equal(linesOf(data, 7002), 0, `killed before step ${steps + 1}`);
      assert.equal(linesOf(data, 7001), 2);
      assertTidy(data);
      const verify = runProgram(['verify', '--data', data]);
      assert.equal(
        await verify.ended,
        0,
        `killed before step ${steps + 1}: ${verify.stderr()}${verify.stdout()}`,
      );
    }
    assert.ok(steps > 15, `${steps} steps`);
  } finally {
    installation.remove();
  }
});
