/** Memory does not depend on a file's size: a process with a small heap reads files that would not fit into it. */
import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createInstallation, type Installation, type Serving } from '../support/appliance.ts';

/** The heap limit of each thread; the rows alone are several times as large. */
const HEAP_MAX_MB = 24;
const ROWS = 70_000;

let installation: Installation;
let serving: Serving;

before(async () => {
  installation = createInstallation();
  mkdirSync(installation.drop, { recursive: true });
  serving = await installation.serve({ NODE_OPTIONS: `--max-old-space-size=${HEAP_MAX_MB}` });
});
after(() => installation?.remove());

/** Writes a sample file into the drop folder, and waits until it is applied. */
async function generated(options: readonly string[]): Promise<void> {
  const out = ['--out', installation.drop, '--export', 'newswire', '--rows', String(ROWS)];
  const { stdout } = installation.cli([
    'generate',
    ...out,
    '--subscriptions',
    '7001:text',
    ...options,
    '--json',
  ]);
  const [{ file }] = JSON.parse(stdout);
  const name = String(file).slice(String(file).lastIndexOf('/') + 1);
  const line = await serving.logged(
    `the outcome of ${name}`,
    (logged) => logged.file === name && logged.msg.startsWith('file '),
  );
  assert.deepEqual([line.msg, line.rows], ['file applied', ROWS]);
  const bytes = statSync(join(installation.drop, String(line.destination))).size;
  if (name.endsWith('.csv'))
    assert.ok(bytes > HEAP_MAX_MB * 1024 * 1024, 'the file must be larger than the memory');
}

test('a large compressed window', () => generated(['--form', 'ndjson.gz']));

test('a long backfill', () => generated(['--form', 'csv', '--backfill', 'large', '--windows', '100']));
