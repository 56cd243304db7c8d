/** Any number of files that are no exports: each takes a transaction. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { REFUSED_RECORDS_MAX } from '../../src/ingest/files/file-record.ts';
import { createInstallation } from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { contentOfDetections } from '../support/database-content.ts';
import { programCalls } from '../support/disk-calls.ts';
import type { LogLine } from '../support/program.ts';
import { until } from '../support/until.ts';

test('a stop does not wait for refused files, and their log and records are bounded', {
  skip: NO_PRELOAD,
}, async () => {
  using installation = createInstallation();
  const count = REFUSED_RECORDS_MAX + 20;
  const isRefused = ({ msg }: LogLine) => msg === 'file refused';
  mkdirSync(installation.drop, { recursive: true });
  for (let at = 0; at < count; at += 1) writeFileSync(join(installation.drop, `${at}.txt`), '');
  const first = await installation.serve();
  await first.logged('the first one', isRefused);
  assert.equal(await first.stop(), 0);
  assert.ok(first.log.filter(isRefused).length < count, 'the stop waited for all');

  const recorded = programCalls(dirname(installation.data));
  const second = await installation.serve(recorded.settings);
  await until('all', () => !readdirSync(installation.drop).some((name) => name.endsWith('.txt')));
  const ahead = join(installation.data, 'detections.db-wal');
  await until('an empty write-ahead log', () => statSync(ahead).size === 0);
  const named = recorded.calls().map((call) => ('to' in call ? call.to : ''));
  let refused = 0;
  // How many files had been refused at each checkpoint.
  const checkpoints = named.flatMap((path) => {
    if (/\/refused\/\d+\.txt$/.test(path)) refused += 1;
    return path.endsWith('detections.db-checkpoint') ? [refused] : [];
  });
  // Not only at the start and after the 1,000 files of a scan, when the write-ahead log is emptied anyway.
  const isEarly = checkpoints.some((files) => files > 0 && files < 900);
  assert.ok(isEarly, `${checkpoints}`);
  await second.stop();
  const content = contentOfDetections(installation.data);
  const numbers = (content.ingest_file ?? []).map((row) => Number(Object(row).number));
  assert.equal(numbers.length, REFUSED_RECORDS_MAX);
  assert.equal(Math.max(...numbers), count);
  rmSync(join(installation.data, 'detections.db'));
  const third = await installation.serve();
  await third.logged('the new database', ({ msg }) => msg.startsWith('detections.db was brought up'));
  await third.stop();
  assert.deepEqual(contentOfDetections(installation.data).ingest_file, content.ingest_file);
});
