/** A crash after each step of a file's way, and what the next start makes of it. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { DETECTIONS_MIGRATIONS } from '../src/store/detections-schema.ts';
import { openWriter } from '../src/store/writer.ts';
import { createInstallation, putFile } from './support/appliance.ts';
import { detectionsOf, isComplaint, type JournalEntry, journalEntries } from './support/crashes.ts';
import { contentOf, fileName, newRow, nextWindowMs } from './support/export-files.ts';

/** A moment of one file's way that a crash can leave behind. */
interface Left {
  readonly taken: string;
  readonly settled: string;
  readonly journal: string;
  readonly number: number;
  /** Puts the database back to before the file's commit. */
  readonly uncommit: () => void;
  /** Makes the record say that the file was not yet moved. */
  readonly unsettle: () => void;
}

/** One file applied (or failed), then the folder put back to how a crash at some step would have left it. */
async function afterCrash(
  content: Buffer,
  crash: (left: Left) => void,
): Promise<{ entries: JournalEntry[]; names: string[]; rows: unknown[]; reasons: string[] }> {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  try {
    const name = fileName('newswire', nextWindowMs());
    const database = join(installation.data, 'detections.db');
    await (await installation.serve()).stop();
    copyFileSync(database, `${database}.before`);
    const first = await installation.serve();
    putFile(installation.drop, name, content);
    const line = await first.logged('what became of it', (logged) => logged.file === name);
    await first.stop();
    const number = Number(line.number);
    const settled = join(installation.drop, String(line.destination));
    crash({
      taken: join(installation.drop, '.taken', `${number}.${name}`),
      settled,
      journal: join(installation.data, 'journal'),
      number,
      uncommit: () => renameSync(`${database}.before`, database),
      unsettle: () => {
        const db = openWriter(database, DETECTIONS_MIGRATIONS);
        db.prepare('UPDATE ingest_file SET settled = 0 WHERE number = ?').run(number);
        db.close();
      },
    });

    const second = await installation.serve();
    // A file after it proves that ingest goes on.
    const next = fileName('newswire', nextWindowMs());
    putFile(installation.drop, next, contentOf('ndjson', [newRow()]));
    await second.logged('that the next file was applied', (logged) => logged.file === next);
    await second.stop();
    assert.deepEqual(second.log.filter(isComplaint), [], 'a crash is no reason to complain');
    assert.deepEqual(readdirSync(join(installation.drop, '.taken')), []);
    const folder = dirname(settled);
    const names = readdirSync(folder).filter((found) => found !== next);
    assert.ok(readFileSync(join(folder, name)).equals(content));
    const reasons = names.filter((found) => found.endsWith('.reason.json'));
    const entries = journalEntries(installation.data).filter(({ applied }) => applied !== undefined);
    return { entries, names, rows: detectionsOf(installation), reasons };
  } finally {
    installation.remove();
  }
}

/** Cuts the journal off within the line that names a file. */
function cutOff(journal: string, number: number): void {
  const text = readFileSync(journal, 'utf8');
  writeFileSync(journal, text.slice(0, text.indexOf(`"applied":${number}`) + 20));
}

const CRASHES: readonly [string, Parameters<typeof afterCrash>[1], number[]][] = [
  [
    'in the middle of the journal line',
    ({ taken, settled, journal, number, uncommit }) => {
      renameSync(settled, taken);
      cutOff(journal, number);
      uncommit();
    },
    // What was taken is given the next number.
    [2, 3],
  ],
  [
    'after the journal line',
    ({ taken, settled, uncommit }) => {
      renameSync(settled, taken);
      uncommit();
    },
    [1, 2],
  ],
  [
    'after a full disk kept the commit from being made and the file was taken again',
    ({ taken, settled, uncommit }) => {
      renameSync(settled, taken.replace('/1.', '/2.'));
      uncommit();
    },
    // The line of the attempt that failed is followed by none.
    [1, 3, 4],
  ],
  [
    'after the commit',
    ({ taken, settled, unsettle }) => {
      renameSync(settled, taken);
      unsettle();
    },
    [1, 2],
  ],
  ['after the file was moved', ({ unsettle }) => unsettle(), [1, 2]],
];

for (const [moment, crash, numbers] of CRASHES) {
  test(`a crash ${moment} is made good by the next start`, async () => {
    const result = await afterCrash(contentOf('ndjson', [newRow(), newRow()]), crash);
    assert.deepEqual(
      result.entries.map(({ applied }) => applied),
      numbers,
    );
    assert.equal(result.names.length, 1);
    assert.equal(result.rows.length, 3);
  });
}

for (const [moment, crash] of [
  ['before a failed file was committed', ({ uncommit }: Left) => uncommit()],
  ['before a failed file was moved', ({ unsettle }: Left) => unsettle()],
] as const) {
  test(`a crash ${moment} is made good by the next start`, async () => {
    const result = await afterCrash(Buffer.from('broken\n'), (left) => {
      renameSync(left.settled, left.taken);
      rmSync(`${left.settled}.reason.json`);
      crash(left);
    });
    assert.equal(result.reasons.length, 1);
    assert.deepEqual(
      result.entries.map(({ applied }) => applied),
      [2],
    );
  });
}

test('a file that was taken and not committed is read as if it had just been dropped', async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_QUIET_MS: '0' });
  try {
    await (await installation.serve()).stop();
    const name = fileName('newswire', nextWindowMs(), 'csv.gz');
    const content = contentOf('csv.gz', [newRow(), newRow()]);
    writeFileSync(join(installation.drop, '.taken', `17.${name}`), content);
    const serving = await installation.serve();
    const line = await serving.logged('what became of it', (logged) => logged.file === name);
    assert.deepEqual([line.msg, line.created], ['file applied', 2]);
    assert.ok(existsSync(join(installation.drop, String(line.destination))));
    await serving.stop();
  } finally {
    installation.remove();
  }
});
