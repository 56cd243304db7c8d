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
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { listSegments } from '../../src/log/segment.ts';
import { createInstallation, putFile } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { programCalls, syncedAfter } from '../support/disk-calls.ts';
import { contentOf, fileName, newRow, nextWindowMs } from '../support/export-files.ts';
import { detectionsOf, isErrorLine, type LoggedFile, loggedFiles } from '../support/installation-state.ts';
import { inFolder } from '../support/program.ts';

/** The state after a crash at some step of processing a file. */
interface Left {
  readonly taken: string;
  /** The final path of the file. */
  readonly archived: string;
  /** The log segment, and its length before the file. */
  readonly segment: string;
  readonly bytes: number;
  /** Restores the database to its state before the file's commit. */
  readonly uncommit: () => void;
}

/** Applies (or fails) a file, then changes the folder to the state after a crash at some step. */
async function afterCrash(
  content: Buffer,
  crash: (left: Left) => void,
): Promise<{ files: LoggedFile[]; names: string[]; rows: unknown[]; reasons: string[] }> {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  try {
    const name = fileName('newswire', nextWindowMs());
    const database = join(installation.data, 'detections.db');
    await (await installation.serve()).stop();
    copyFileSync(database, `${database}.before`);
    const segment = join(installation.data, 'log', '000000000001.zst');
    const bytes = listSegments(join(installation.data, 'log')).length === 0 ? 0 : statSync(segment).size;
    const first = await installation.serve();
    putFile(installation.drop, name, content);
    const line = await first.logged('the outcome of the file', (logged) => logged.file === name);
    await first.stop();
    const number = Number(line.number);
    const archived = join(installation.drop, String(line.destination));
    crash({
      taken: join(installation.drop, '.taken', `${number}.${name}`),
      archived,
      segment,
      bytes,
      uncommit: () => renameSync(`${database}.before`, database),
    });

    const second = await installation.serve();
    // A later file proves that ingest continues.
    const next = fileName('newswire', nextWindowMs());
    putFile(installation.drop, next, contentOf('ndjson', [newRow()]));
    await second.logged('the next file to be applied', (logged) => logged.file === next);
    await second.stop();
    assert.deepEqual(second.log.filter(isErrorLine), [], 'a crash must not cause errors in the log');
    assert.deepEqual(readdirSync(join(installation.drop, '.taken')), []);
    const folder = dirname(archived);
    const names = readdirSync(folder).filter((found) => found !== next);
    assert.ok(readFileSync(join(folder, name)).equals(content));
    const reasons = names.filter((found) => found.endsWith('.reason.json'));
    const files = loggedFiles(installation.data).filter(({ outcome }) => outcome === 'applied');
    return { files, names, rows: detectionsOf(installation), reasons };
  } finally {
    installation.remove();
  }
}

const CRASHES: readonly [string, Parameters<typeof afterCrash>[1], number[]][] = [
  [
    'before its entry is in the log',
    ({ taken, archived, segment, bytes, uncommit }) => {
      renameSync(archived, taken);
      truncateSync(segment, bytes);
      uncommit();
    },
    // The taken file gets the next number.
    [2, 3],
  ],
  [
    'in the middle of its entry',
    ({ taken, archived, segment, bytes, uncommit }) => {
      renameSync(archived, taken);
      truncateSync(segment, bytes + 40);
      uncommit();
    },
    [2, 3],
  ],
  [
    'after its entry is in the log',
    ({ taken, archived, uncommit }) => {
      renameSync(archived, taken);
      uncommit();
    },
    [1, 2],
  ],
  ['after the commit', ({ taken, archived }) => renameSync(archived, taken), [1, 2]],
  ['after the file was moved', () => {}, [1, 2]],
];

for (const [moment, crash, numbers] of CRASHES) {
  test(`a crash ${moment} is repaired by the next start`, async () => {
    const result = await afterCrash(contentOf('ndjson', [newRow(), newRow()]), crash);
    assert.deepEqual(
      result.files.map(({ number }) => number),
      numbers,
    );
    assert.equal(result.names.length, 1);
    assert.equal(result.rows.length, 3);
  });
}

for (const [moment, crash] of [
  ['before a failed file was committed', ({ uncommit }: Left) => uncommit()],
  ['before a failed file was moved', () => {}],
] as const) {
  test(`a crash ${moment} is repaired by the next start`, async () => {
    const result = await afterCrash(Buffer.from('broken\n'), (left) => {
      renameSync(left.archived, left.taken);
      rmSync(`${left.archived}.reason.json`);
      crash(left);
    });
    assert.equal(result.reasons.length, 1);
    assert.deepEqual(
      result.files.map(({ number }) => number),
      [2],
    );
  });
}

test('a file taken but not committed is read as if just dropped', async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  try {
    await (await installation.serve()).stop();
    const name = fileName('newswire', nextWindowMs(), 'csv.gz');
    const content = contentOf('csv.gz', [newRow(), newRow()]);
    writeFileSync(join(installation.drop, '.taken', `17.${name}`), content);
    const serving = await installation.serve();
    const line = await serving.logged('the outcome of the file', (logged) => logged.file === name);
    assert.deepEqual([line.msg, line.created], ['file applied', 2]);
    assert.ok(existsSync(join(installation.drop, String(line.destination))));
    await serving.stop();
  } finally {
    installation.remove();
  }
});

test('a file taken in another state of the data is read, though a record has its number', async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  try {
    const first = await installation.serve();
    for (const name of ['notes.txt', 'more.txt']) {
      putFile(installation.drop, name, Buffer.from('x'));
      await first.logged('the file', (logged) => logged.file === name);
    }
    await first.stop();
    const name = 'newswire.backfill-autumn.ndjson.gz';
    writeFileSync(join(installation.drop, '.taken', `1.${name}`), contentOf('ndjson.gz', [newRow()]));
    const { waiting_files } = JSON.parse(installation.cli(['ingest', 'status', '--json']).stdout);
    assert.deepEqual(waiting_files, [name]);
    const serving = await installation.serve();
    const line = await serving.logged('the outcome of the file', (logged) => logged.number === 3);
    assert.deepEqual([line.msg, line.file, line.created], ['file applied', name, 1]);
    await serving.stop();
    assert.deepEqual(readdirSync(join(installation.drop, '.taken')), []);
  } finally {
    installation.remove();
  }
});

test('an archived file survives a power cut, also the first one of a day', {
  skip: NO_PRELOAD,
}, async () => {
  await inFolder(async (folder) => {
    const { settings, calls } = programCalls(folder);
    const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0', ...settings });
    try {
      const serving = await installation.serve();
      const name = fileName('newswire', nextWindowMs());
      putFile(installation.drop, name, contentOf('ndjson', [newRow()]));
      const line = await serving.logged('the outcome of the file', (logged) => logged.file === name);
      await serving.stop();
      const archived = join(installation.drop, String(line.destination));
      const done = calls();
      const day = dirname(archived);
      assert.deepEqual(
        syncedAfter(done, day, 1),
        [join(installation.drop, 'archive')],
        "the day's folder must be synced",
      );
      // The removal of the old name is synced last: until then, a start finds the file.
      assert.deepEqual(syncedAfter(done, archived, 2), [day, join(installation.drop, '.taken')]);
      assert.deepEqual(
        syncedAfter(done, installation.drop, 1),
        [installation.data],
        'the drop folder must be synced',
      );
    } finally {
      installation.remove();
    }
  });
});
