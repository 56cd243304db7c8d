/** Builds an executable as `npm run build` does, in its own folder, and runs it in empty folders. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
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

/** For the tests of a file, after which it is removed. */
export function buildExecutable() {
  mkdirSync(join(PROJECT, 'dist'), { recursive: true });
  const built = mkdtempSync(join(PROJECT, 'dist', 'test-'));
  const scratch = mkdtempSync(join(tmpdir(), 'wirewatch-executable-'));
  const path = join(built, 'wirewatch');
  const source = JSON.stringify(join(PROJECT, 'build', 'executable.mjs'));
  const script = `const { makeExecutable } = await import(${source});
    await makeExecutable(${JSON.stringify({ output: path })});`;
  // The build needs no home and only the system's PATH.
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: scratch,
    env: { PATH: '/usr/bin:/bin', HOME: join(scratch, 'absent') },
    encoding: 'utf8',
  });
  assert.equal(result.status, 0, result.stderr);
  assert.deepEqual(readdirSync(scratch), [], 'the build wrote outside of its output folder');
  assert.deepEqual(readdirSync(built).sort(), ['wirewatch', 'wirewatch.cdx.json', 'wirewatch.sha256']);
  after(() => {
    for (const folder of [built, scratch]) rmSync(folder, { recursive: true, force: true });
  });
  let places = 0;
  return {
    path,
    /** Creates an empty home, with an empty folder for temporary files beside it. */
    place(): { readonly home: string; readonly temporary: string } {
      places += 1;
      const home = join(scratch, String(places), 'home');
      const temporary = join(dirname(home), 'tmp');
      mkdirSync(home, { recursive: true });
      mkdirSync(temporary);
      return { home, temporary };
    },
  };
}
