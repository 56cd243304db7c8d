/** The manual's writers of export files, exactly as printed: what they write is valid, and on a full disk nothing looks complete. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { succeed } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { example } from '../support/manual.ts';
import { inFolder } from '../support/program.ts';

/** The last finished window, and the next one, which may end before the example reads the clock. */
const [last, next] = [1, 0].map((before) =>
  formatWindowStart((Math.floor(Date.now() / WINDOW_MS) - before) * WINDOW_MS),
);
for (const [name, command, drafts] of [
  ['shell-writer', 'sh', ['.newswire.20261120T1010Z.ndjson.gz']],
  ['csv-writer', 'sh', ['newswire.20261120T1020Z.csv.part']],
  ['python-writer', 'python3', [`.imagewire.${last}.ndjson.gz`, `.imagewire.${next}.ndjson.gz`]],
] as const) {
  const skip = without(command === 'sh' ? 'gzip' : command);
  const write = (folder: string) => {
    const code = example('export-format', name);
    const drop = join(folder, 'wirewatch-data', 'drop');
    mkdirSync(drop, { recursive: true });
    const run = () => spawnSync(command, ['-c', code], { cwd: folder, encoding: 'utf8' });
    return { drop, run };
  };

  test(`${name} writes a valid file`, { skip }, () =>
    inFolder(async (folder) => {
      const { drop, run } = write(folder);
      const { status, stderr } = run();
      assert.equal(status, 0, stderr);
      const [file = '', ...more] = readdirSync(drop);
      assert.deepEqual(more, []);
      const { stdout } = succeed(['ingest', 'validate', join(drop, file), '--json']);
      const { valid, rows, errors, ignored_columns } = JSON.parse(stdout);
      assert.deepEqual([valid, rows, errors, ignored_columns], [true, 1, [], []]);
    }),
  );

  const cannotFill = !existsSync('/dev/full') && 'there is no /dev/full';
  const full = { skip: cannotFill || skip };
  test(`${name} leaves no partial file under the final name on a full disk`, full, () =>
    inFolder(async (folder) => {
      const { drop, run } = write(folder);
      for (const draft of drafts) symlinkSync('/dev/full', join(drop, draft));
      const { status, stderr } = run();
      assert.notEqual(status, 0);
      assert.match(stderr, /No space left on device/);
      assert.deepEqual(readdirSync(drop).sort(), [...drafts].sort());
    }),
  );
}
