/** A dropped file survives a power cut: it is synced before the log relies on it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { createInstallation, putFile } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { type DiskCall, programCalls, Unsynced } from '../support/disk-calls.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import type { LogLine } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

const isLog = ({ path }: DiskCall) => /\/log\/[^/]*\.zst$/.test(path);
const isPutAway = (call: DiskCall): call is Extract<DiskCall, { to: string }> =>
  call.call === 'rename' && /\/drop\/(archive|failed|refused)\/.*\.(ndjson|gz|txt)$/.test(call.to);
/** Reason files, and notes about a file that is being read. */
const isNote = (path: string) => /\.reason\.json(\.tmp)?$|reading/.test(path);

const installation = createInstallation({ WIREWATCH_INGEST_BAD_ROWS: 'skip' });
after(installation.remove);

test('a file is on the disk in .taken before its entry is, and its entry before the file is archived', {
  skip: NO_PRELOAD,
}, async () => {
  const { settings, calls } = programCalls(testFolder());
  const serving = await installation.serve(settings);
  const failing = nextWindowMs();
  const skipped = { ...newRow(), strength_score: -1 };
  for (const [name, content, outcome] of [
    [fileName('newswire', nextWindowMs()), ndjson([newRow(), skipped]), 'file applied'],
    [fileName('newswire', failing, 'ndjson.gz'), 'no gzip', 'file failed'],
    [fileName('newswire', failing), ndjson([newRow()]), 'file held'],
    ['readme.txt', 'not an export', 'file refused'],
    ['newswire.backfill-history.ndjson', ndjson([newRow(), newRow()]), 'file applied'],
  ] as const) {
    putFile(installation.drop, name, content);
    const isOutcome = ({ msg, file }: LogLine) => file === name && msg.startsWith('file ');
    assert.equal((await serving.logged(`the outcome of ${name}`, isOutcome)).msg, outcome);
  }
  installation.cli(['window', 'reset', 'newswire', formatMs(failing)]);
  await serving.stop();

  const unsynced = new Unsynced();
  const inDrop = (paths: string[]) =>
    paths.filter((path) => path.startsWith(installation.drop) && !isNote(path));
  const inLog = (paths: string[]) => paths.filter((path) => /\/log(\/|$)/.test(path));
  const putAway: string[] = [];
  let entries = 0;
  for (const call of calls()) {
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
  for (const part of [/\/archive\//, /\/failed\//, /\/refused\//, /\.skipped\.ndjson$/m])
    assert.match(putAway.join('\n'), part);
  const left = [...unsynced.content, ...unsynced.names].filter((path) => existsSync(path));
  assert.deepEqual([inDrop(left), inLog(left)], [[], []], 'at the end');
  const removed = unsynced.removed.filter((path) => path.includes('/.taken/'));
  assert.deepEqual(removed, [], 'in one place');
});
