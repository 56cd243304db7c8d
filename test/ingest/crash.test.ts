/** A crash after each step of processing a file, and the next start. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { listSegments } from '../../src/log/segment.ts';
import { createInstallation, putFile } from '../support/appliance.ts';
import { contentOf, fileName, newRow, nextWindowMs } from '../support/export-files.ts';
import { detectionsOf, isErrorLine, loggedFiles } from '../support/installation-state.ts';

/** The state after a crash at some step of processing a file. */
interface Left {
  readonly taken: string;
  /** The final path of the file. */
  readonly archived: string;
  /** Truncates the log segment to its length before the file, and some bytes of its entry. */
  readonly cutLog: (more: number) => void;
  /** Restores the database to its state before the file's commit. */
  readonly uncommit: () => void;
}

/** What the start after the crash is to find. `again`: the taken file gets the next number. */
const CRASHES: readonly [moment: string, content: Buffer, crash: (left: Left) => void, again?: true][] = [
  [
    'before its entry is in the log',
    contentOf('ndjson', [newRow(), newRow()]),
    ({ cutLog, uncommit }) => {
      cutLog(0);
      uncommit();
    },
    true,
  ],
  [
    'in the middle of its entry',
    contentOf('ndjson', [newRow(), newRow()]),
    ({ cutLog, uncommit }) => {
      cutLog(40);
      uncommit();
    },
    true,
  ],
  ['after its entry is in the log', contentOf('ndjson', [newRow(), newRow()]), ({ uncommit }) => uncommit()],
  ['after the commit', contentOf('ndjson', [newRow(), newRow()]), () => {}],
  ['before a failed file was committed', Buffer.from('broken\n'), ({ uncommit }) => uncommit()],
  ['before a failed file was moved', Buffer.from('broken\n'), () => {}],
];

const { drop, data, ...installation } = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
after(installation.remove);

/** Drops a file on a started appliance, which is then stopped. */
async function processed(name: string, content: string | Buffer) {
  const serving = await installation.serve();
  putFile(drop, name, content);
  const line = await serving.logged('the outcome of the file', (logged) => logged.file === name);
  await serving.stop();
  return { line, log: serving.log };
}

for (const [moment, content, crash, again] of CRASHES) {
  test(`a crash ${moment} is repaired by the next start`, async () => {
    await processed(fileName('newswire', nextWindowMs()), contentOf('ndjson', [newRow()]));
    const database = join(data, 'detections.db');
    copyFileSync(database, `${database}.before`);
    const segment = listSegments(join(data, 'log')).at(-1)?.path ?? '';
    const bytes = statSync(segment).size;
    const before = detectionsOf({ data }).length;
    const name = fileName('newswire', nextWindowMs());
    const { line } = await processed(name, content);
    const isGood = line.msg === 'file applied';
    const number = Number(line.number);
    const archived = join(drop, String(line.destination));
    const taken = join(drop, '.taken', `${number}.${name}`);
    renameSync(archived, taken);
    if (!isGood) rmSync(`${archived}.reason.json`);
    crash({
      taken,
      archived,
      cutLog: (more) => truncateSync(segment, bytes + more),
      uncommit: () => renameSync(`${database}.before`, database),
    });

    // A later file proves that ingest continues.
    const next = fileName('newswire', nextWindowMs());
    const { log } = await processed(next, contentOf('ndjson', [newRow()]));
    assert.deepEqual(log.filter(isErrorLine), [], 'a crash must not cause errors in the log');
    assert.deepEqual(readdirSync(join(drop, '.taken')), []);
    assert.ok(readFileSync(archived).equals(content));
    assert.equal(existsSync(`${archived}.reason.json`), !isGood);
    assert.equal(detectionsOf({ data }).length, before + (isGood ? 3 : 1));
    const records = new Map(loggedFiles(data).map((record) => [record.number, record]));
    const [first, second] = [number, number + 1].map((one) => records.get(one)?.name);
    assert.deepEqual([first, second], again ? [undefined, name] : [name, next]);
  });
}

test('a file taken in another state of the data is read, though a record has its number', async () => {
  const name = 'newswire.backfill-autumn.ndjson.gz';
  writeFileSync(join(drop, '.taken', `1.${name}`), contentOf('ndjson.gz', [newRow()]));
  const { waiting_files } = JSON.parse(installation.cli(['ingest', 'status', '--json']).stdout);
  assert.deepEqual(waiting_files, [name]);
  const serving = await installation.serve();
  const line = await serving.logged('the outcome of the file', (logged) => logged.file === name);
  assert.deepEqual([line.msg, line.created], ['file applied', 1]);
  assert.notEqual(line.number, 1);
  await serving.stop();
  assert.deepEqual(readdirSync(join(drop, '.taken')), []);
});
