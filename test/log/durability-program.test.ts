/** A dropped file survives a power cut: it is synced before the log relies on it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createInstallation, putFile } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { type DiskCall, programCalls, Unsynced } from '../support/disk-calls.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

const isLog = ({ path }: DiskCall) => /\/log\/[^/]*\.zst$/.test(path);
const isPutAway = (call: DiskCall): call is Extract<DiskCall, { to: string }> =>
  call.call === 'rename' && /\/drop\/(archive|failed|refused)\/.*\.(ndjson|gz|txt)$/.test(call.to);
/** Reason files, and notes about a file that is being read. */
const isNote = (path: string) => /\.reason\.json(\.tmp)?$|reading/.test(path);

test('a file is on the disk in .taken before its entry is, and its entry before the file is archived', {
  skip: NO_PRELOAD,
}, async () => {
  const installation = createInstallation({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
  try {
    const calls = await recorded(installation);
    const { drop } = installation;
    const unsynced = new Unsynced();
    const inDrop = (paths: string[]) => paths.filter((path) => path.startsWith(drop) && !isNote(path));
    const inLog = (paths: string[]) => paths.filter((path) => /\/log(\/|$)/.test(path));
    const putAway: string[] = [];
    let entries = 0;
    for (const call of calls) {
      if (call.call === 'sync' && isLog(call)) {
        entries += 1;
        assert.deepEqual(inDrop([...unsynced.content, ...unsynced.names]), [], `entry ${entries}`);
      }
      if (isPutAway(call)) {
        putAway.push(call.to);
        assert.deepEqual(inLog([...unsynced.content, ...unsynced.names]), [], call.to);
      }
      unsynced.note(call);
    }
    assert.ok(entries > 5);
    for (const folder of ['archive', 'failed', 'refused'])
      assert.ok(
        putAway.some((path) => path.includes(`/${folder}/`)),
        folder,
      );
    assert.ok(putAway.some((path) => path.endsWith('.skipped.ndjson')));
    const left = [...unsynced.content, ...unsynced.names].filter((path) => existsSync(path));
    assert.deepEqual(inDrop(left), [], 'at the end');
    assert.deepEqual(
      unsynced.removed.filter((path) => path.includes('/.taken/')),
      [],
      'in one place',
    );
    assert.deepEqual(inLog(left), [], 'at the end');
  } finally {
    installation.remove();
  }
});

/** A window with a skipped row, a window whose file fails and is replaced, a backfill, an invalid name. */
async function recorded(installation: ReturnType<typeof createInstallation>): Promise<DiskCall[]> {
  const { settings, calls } = programCalls(join(installation.data, '..'));
  const serving = await installation.serve(settings);
  const drop = async (name: string, content: string, outcome: string) => {
    const before = serving.log.length;
    putFile(installation.drop, name, content);
    const isOutcome = (line: (typeof serving.log)[number]) =>
      serving.log.indexOf(line) >= before && line.file === name && line.msg.startsWith('file ');
    assert.equal((await serving.logged(`the outcome of ${name}`, isOutcome)).msg, `file ${outcome}`);
  };
  const bad = `${JSON.stringify({ ...newRow(), strength_score: -1 })}\n`;
  await drop(fileName('newswire', nextWindowMs()), ndjson([newRow()]) + bad, 'applied');
  const failing = nextWindowMs();
  await drop(fileName('newswire', failing, 'ndjson.gz'), 'no gzip', 'failed');
  await drop(fileName('newswire', failing), ndjson([newRow()]), 'held');
  await drop('readme.txt', 'not an export', 'refused');
  await drop('newswire.backfill-history.ndjson', ndjson([newRow(), newRow()]), 'applied');
  installation.cli(['window', 'reset', 'newswire', new Date(failing).toISOString().replace('.000', '')]);
  await serving.stop();
  return calls();
}
