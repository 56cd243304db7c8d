/** `npm test` itself: a failed test fails the run. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { testFolder } from './support/test-folder.ts';

test('a test that fails twice fails the run, whichever file defines it', () => {
  const folder = testFolder();
  const written = (name: string, text: string) => {
    writeFileSync(join(folder, name), `import { test } from 'node:test';\n${text}`);
    return join(folder, name);
  };
  const fails = "export const fails = () => test('defined elsewhere', () => Promise.reject(new Error()));";
  written('shared.mjs', fails);
  const wrong = written('wrong.test.mjs', "import { fails } from './shared.mjs';\nfails();");
  const right = written('right.test.mjs', "test('right', () => {});");
  const run = (...files: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, 'run.ts'), ...files], { encoding: 'utf8' });
  const { status, stdout } = run(wrong, right);
  assert.equal(status, 1, stdout);
  assert.equal(stdout.split('✖ defined elsewhere').length - 1, 4, 'it runs again, alone');
  assert.equal(run(right).status, 0);
});
