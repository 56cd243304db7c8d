/** Builds an executable as `npm run build` does, in its own folder, for the tests of a file that run it in empty folders. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach } from 'node:test';
import Database from 'better-sqlite3';

export const PROJECT = join(import.meta.dirname, '..', '..');

/** The version of SQLite in the addon. */
export function sqliteVersion(): unknown {
  const db = new Database(':memory:');
  try {
    return db.prepare('SELECT sqlite_version()').pluck().get();
  } finally {
    db.close();
  }
}

mkdirSync(join(PROJECT, 'dist'), { recursive: true });
const built = mkdtempSync(join(PROJECT, 'dist', 'test-'));
const scratch = mkdtempSync(join(tmpdir(), 'wirewatch-executable-'));
after(() => {
  for (const folder of [built, scratch]) rmSync(folder, { recursive: true, force: true });
});

/** The path of the executable. */
export const executable = join(built, 'wirewatch');
const source = JSON.stringify(join(PROJECT, 'build', 'executable.mjs'));
const script = `const { makeExecutable } = await import(${source});
  await makeExecutable(${JSON.stringify({ output: executable })});`;
// The build needs no home and only the system's PATH.
const result = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
  cwd: scratch,
  env: { PATH: '/usr/bin:/bin', HOME: join(scratch, 'absent') },
  encoding: 'utf8',
});
assert.equal(result.status, 0, result.stderr);
assert.deepEqual(readdirSync(scratch), [], 'the build wrote outside of its output folder');
assert.deepEqual(readdirSync(built).sort(), ['wirewatch', 'wirewatch.cdx.json', 'wirewatch.sha256']);

/** Each test has an empty home, with an empty folder for temporary files beside it. */
export let home: string;
export let temporary: string;
beforeEach(() => {
  const place = mkdtempSync(join(scratch, 'place-'));
  [home, temporary] = [join(place, 'home'), join(place, 'tmp')];
  for (const folder of [home, temporary]) mkdirSync(folder);
});

export const environment = (more: Record<string, string> = {}) => ({
  ...{ HOME: home, TMPDIR: temporary },
  ...more,
});
