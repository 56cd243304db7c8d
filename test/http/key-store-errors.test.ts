/** Damage of access.db that only the ingest thread meets: it waits, and goes on without a restart. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Driver from 'better-sqlite3';
import { sharedAppliance } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { alertsOf } from '../support/installation-state.ts';
import { preloaded } from '../support/preload.ts';
import { eventually, until } from '../support/until.ts';

const PAGE_BYTES = 16_384;

const appliance = await sharedAppliance();
const store = join(appliance.data, 'access.db');

/** Overwrites a part of the open file. @returns a function that restores it */
function spoiled(start: number, bytes: number): () => void {
  const content = readFileSync(store).subarray(start, start + bytes);
  const write = (part: Buffer) => {
    const file = openSync(store, 'r+');
    writeSync(file, part, 0, bytes, start);
    closeSync(file);
  };
  write(Buffer.alloc(bytes, 'no database '));
  return () => write(content);
}

const OF_THIS = ['keys cannot be checked', 'ingest stopped', 'database damaged'] as const;

test('damage that only ingest meets stops ingest until it is over, and is not taken for damage of detections.db', {
  skip: NO_PRELOAD,
}, async () => {
  const threads = join(appliance.data, '..', 'threads');
  // Each thread loads this.
  const counted = `import { appendFileSync } from 'node:fs'; appendFileSync(${JSON.stringify(threads)}, '.');`;
  await appliance.restart(preloaded(counted));
  const starts = () => readFileSync(threads).length;
  const db = new Driver(store);
  const page = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'removal'").pluck().get());
  const end = spoiled((page - 1) * PAGE_BYTES, PAGE_BYTES);
  try {
    // After a commit, the ingest thread reads the file again.
    db.exec("UPDATE account SET name = name || '!'; UPDATE account SET name = rtrim(name, '!')");
    await eventually(async () => {
      const stopped = (await alertsOf(appliance)).find(({ name }) => name === 'ingest stopped');
      assert.match(stopped?.detail ?? '', /^access\.db: /);
    });
    // Several starts of the thread later it is the same alert, opened once.
    const begun = starts();
    await until('several starts', () => starts() > begun + 3);
    const { log } = appliance.serving();
    const alerts = log.filter(({ msg }) => msg === 'alert opened' || msg === 'alert closed');
    const told = alerts.map(({ msg, alert }) => [msg, alert]);
    const ofThis = told.filter(([, alert]) => OF_THIS.some((name) => name === alert));
    assert.deepEqual(ofThis, [['alert opened', 'ingest stopped']]);
    assert.equal((await appliance.get('/v1/me')).status, 200);
  } finally {
    db.close();
    end();
  }
  await until('it is over', async () =>
    (await alertsOf(appliance)).every(({ name }) => name !== 'ingest stopped'),
  );
  const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  assert.equal(line.msg, 'file applied');
});

test('a failed look at access.db while detections.db is made anew keeps nobody from reading afterwards', {
  skip: NO_PRELOAD,
}, async () => {
  const [failed, go] = [join(appliance.data, '..', 'failed'), join(appliance.data, '..', 'go')];
  // Each thread loads this, and a stack has its text; the driver looks for the folder of a database before it opens that.
  const failing = `import fs from 'node:fs';
    const { existsSync } = fs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    fs.existsSync = (path) => {
      const isIt = path === ${JSON.stringify(appliance.data)} && /openAccess[C]onnection/.test(new Error().stack);
      if (!isIt || existsSync(${JSON.stringify(failed)})) return existsSync(path);
      for (let turns = 0; turns < 6000 && !existsSync(${JSON.stringify(go)}); turns += 1)
        Atomics.wait(pause, 0, 0, 10);
      fs.renameSync(${JSON.stringify(go)}, ${JSON.stringify(failed)});
      return false;
    };`;
  await appliance.serving().stop();
  rmSync(join(appliance.data, 'detections.db'));
  // The port is open before the database is.
  await appliance.restart(preloaded(failing));
  writeFileSync(go, '');
  await until('reads', async () => {
    const { status } = await appliance.get('/v1/detections/changes?since=2026-11-20T00:00:00Z');
    return existsSync(failed) && status === 200;
  });
});
