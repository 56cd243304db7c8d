/** The bundle: every package is listed with its licence, and the executable loads no code from the environment. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { runAlone } from '../support/command.ts';
import { cleanEnv } from '../support/scripts.ts';

const root = path.join(import.meta.dirname, '..', '..');

test('licenses, run from the sources, names where the licences are', () => {
  const options = { cwd: root, encoding: 'utf8', env: cleanEnv() } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['src/main.ts', 'licenses'], options);
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /Each package in node_modules contains its own licence/);
});

test('licenses lists packages bundled inside others, too', () => {
  const { status, stdout, stderr } = runAlone(['licenses', '--json']);
  assert.equal(status, 0, stderr);
  const names = JSON.parse(stdout).map(({ name }: { name: string }) => name);
  for (const name of ['tldts', 'tldts-core']) assert.ok(names.includes(name), name);
});

test('no bundled file contains another package, by its source map', () => {
  const refusal = (...inputs: string[]) => {
    const code = `import { refuseHidden } from './build/licenses.mjs'; refuseHidden('.', ${JSON.stringify(inputs)});`;
    const args = ['--input-type=module', '--eval', code];
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' }).stderr;
  };
  assert.match(refusal('node_modules/tldts/dist/cjs/index.js'), /contains code of another package/);
  const own = 'node_modules/tldts/dist/es6/index.js';
  assert.equal(refusal('src/main.ts', 'node_modules/fast-copy/dist/cjs/index.cjs', own), '');
});
