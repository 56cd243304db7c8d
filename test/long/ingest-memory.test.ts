/** Memory does not depend on a file's size: a process with a small heap reads files that would not fit into it. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { sharedAppliance } from '../support/appliance.ts';

/** The heap limit of each thread; the rows alone are several times as large. */
const HEAP_MAX_MB = 24;
const ROWS = 70_000;

const appliance = await sharedAppliance();
// Its commands have more.
await appliance.restart({ NODE_OPTIONS: `--max-old-space-size=${HEAP_MAX_MB}` });

/** Writes a sample file into the drop folder, and waits until it is applied. */
async function generated(options: readonly string[]): Promise<void> {
  const out = ['--out', appliance.drop, '--export', 'newswire', '--rows', String(ROWS)];
  const generate = ['generate', ...out, '--subscriptions', '7001:text', ...options, '--json'];
  const { stdout } = appliance.cli(generate);
  const [{ file }] = JSON.parse(stdout);
  const name = basename(String(file));
  const line = await appliance.processed(name);
  assert.deepEqual([line.msg, line.rows], ['file applied', ROWS]);
  const bytes = statSync(join(appliance.drop, String(line.destination))).size;
  if (name.endsWith('.csv'))
    assert.ok(bytes > HEAP_MAX_MB * 1024 * 1024, 'the file must be larger than the memory');
}

test('a large compressed window', () => generated(['--form', 'ndjson.gz']));

test('a long backfill', () => generated(['--form', 'csv', '--backfill', 'large', '--windows', '100']));
