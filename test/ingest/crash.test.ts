/** A crash after each step of processing a file, and the next start. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { listSegments } from '../../src/log/segment.ts';
import { createInstallation, putFile } from '../support/appliance.ts';
import { countOf, reading } from '../support/database-content.ts';
import { contentOf, fileName, newRow, nextWindowMs } from '../support/export-files.ts';
import { isErrorLine, loggedFiles } from '../support/installation-state.ts';
import { checkStreams } from '../support/streams.ts';

/**
 * `logged`: how many bytes of the file's entry are in the log; null: all of it. `isBad`: the file fails. `again`: the taken
 * file gets the next number.
 */
type Crash = Readonly<{ logged: number | null; isCommitted: boolean; isBad?: true; again?: true }>;

const CRASHES: Readonly<Record<string, Crash>> = {
  'before its entry is in the log': { logged: 0, isCommitted: false, again: true },
  'in the middle of its entry': { logged: 40, isCommitted: false, again: true },
  'after its entry is in the log': { logged: null, isCommitted: false },
  'after the commit': { logged: null, isCommitted: true },
  'before a failed file was committed': { logged: null, isCommitted: false, isBad: true },
  'before a failed file was moved': { logged: null, isCommitted: true, isBad: true },
};

const { drop, data, ...installation } = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
after(installation.remove);

/** Starts, drops a file unless it is there already, and stops once it is processed. */
async function processed(name: string, content: string | Buffer | null = null) {
  const serving = await installation.serve();
  if (content !== null) putFile(drop, name, content);
  const line = await serving.logged('the outcome of the file', (logged) => logged.file === name);
  await serving.stop();
  return { line, log: serving.log };
}

for (const [moment, { logged, isCommitted, isBad = false, again }] of Object.entries(CRASHES)) {
  test(`a crash ${moment} is repaired by the next start`, async () => {
    await processed(fileName('newswire', nextWindowMs()), contentOf('ndjson', [newRow()]));
    const database = join(data, 'detections.db');
    fs.copyFileSync(database, `${database}.before`);
    const segment = listSegments(join(data, 'log')).at(-1)?.path ?? '';
    const bytes = fs.statSync(segment).size;
    const detections = () => reading(database, (db) => countOf(db, 'detection'));
    const before = detections();
    const name = fileName('newswire', nextWindowMs());
    const content = isBad ? Buffer.from('broken\n') : contentOf('ndjson', [newRow(), newRow()]);
    const { line } = await processed(name, content);
    assert.equal(line.msg, isBad ? 'file failed' : 'file applied');
    const number = Number(line.number);
    const archived = join(drop, String(line.destination));
    fs.renameSync(archived, join(drop, '.taken', `${number}.${name}`));
    if (isBad) fs.rmSync(`${archived}.reason.json`);
    if (logged !== null) fs.truncateSync(segment, bytes + logged);
    if (!isCommitted) fs.renameSync(`${database}.before`, database);

    // A later file proves that ingest continues.
    const next = fileName('newswire', nextWindowMs());
    const { log } = await processed(next, contentOf('ndjson', [newRow()]));
    assert.deepEqual(log.filter(isErrorLine), [], 'a crash must not cause errors in the log');
    assert.deepEqual(fs.readdirSync(join(drop, '.taken')), []);
    assert.ok(fs.readFileSync(archived).equals(content));
    assert.equal(fs.existsSync(`${archived}.reason.json`), isBad);
    assert.equal(detections(), before + (isBad ? 1 : 3));
    reading(database, checkStreams);
    const records = new Map(loggedFiles(data).map((record) => [record.number, record]));
    const [first, second] = [number, number + 1].map((one) => records.get(one)?.name);
    assert.deepEqual([first, second], again ? [undefined, name] : [name, next]);
  });
}

test('a file that a crash left in .taken/ is a new one, whatever its time, also for the next owner of a number', async () => {
  installation.cli(['subscription', 'remove', '7002', '--yes']);
  installation.cli(['subscription', 'add', '7002', '--account', 'agency']);
  const name = fileName('newswire', nextWindowMs());
  const path = join(drop, '.taken', `900.${name}`);
  fs.writeFileSync(path, contentOf('ndjson', [newRow({ subscription_id: 7002 })]));
  const hourAgo = Date.now() / 1000 - 3600;
  fs.utimesSync(path, hourAgo, hourAgo);
  await assertApplied(name);
});

/** A start must read the file, which has one row. @returns its line of the log */
async function assertApplied(name: string) {
  const { line } = await processed(name);
  assert.deepEqual([line.msg, line.created], ['file applied', 1]);
  return line;
}

test('a file taken in another state of the data is read, though a record has its number', async () => {
  const name = 'newswire.backfill-autumn.ndjson.gz';
  fs.writeFileSync(join(drop, '.taken', `1.${name}`), contentOf('ndjson.gz', [newRow()]));
  const { waiting_files } = JSON.parse(installation.cli(['ingest', 'status', '--json']).stdout);
  assert.deepEqual(waiting_files, [name]);
  assert.notEqual((await assertApplied(name)).number, 1);
  assert.deepEqual(fs.readdirSync(join(drop, '.taken')), []);
});
