/** The manual's example writers of export files: their files are valid. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runToEnd } from '../support/command.ts';
import { example } from '../support/manual.ts';

function has(tool: string): boolean {
  return spawnSync(tool, ['--version']).status === 0;
}

function temporaryFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'wirewatch-documents-'));
}

describe("the manual's writers", () => {
  const folder = temporaryFolder();
  const drop = path.join(folder, 'wirewatch-data', 'drop');
  before(() => mkdirSync(drop, { recursive: true }));
  after(() => rmSync(folder, { recursive: true }));

  /** Runs an example of the manual. @returns the name of the only file that it dropped */
  function dropped(run: () => ReturnType<typeof spawnSync>): string {
    const there = readdirSync(drop);
    const { status, stderr } = run();
    assert.equal(status, 0, String(stderr));
    const added = readdirSync(drop).filter((name) => !there.includes(name));
    assert.equal(added.length, 1, added.join());
    return path.join(drop, added[0] ?? '');
  }

  function assertValid(file: string): void {
    const { stdout, stderr } = runToEnd(['ingest', 'validate', file, '--json'], {}, folder);
    assert.equal(stderr, '');
    const { valid, rows, errors, ignored_columns } = JSON.parse(stdout);
    assert.deepEqual(
      { valid, rows, errors, ignored_columns },
      { valid: true, rows: 1, errors: [], ignored_columns: [] },
    );
  }

  for (const [name, code] of [
    ['shell', example('export-format', 'shell-writer')],
    ['CSV', example('export-format', 'csv-writer')],
  ] as const) {
    test(`the ${name} example writes valid files`, {
      skip: !has('gzip') && 'gzip is not installed',
    }, () => {
      assertValid(dropped(() => spawnSync('sh', ['-eu', '-c', code], { cwd: folder, encoding: 'utf8' })));
    });
  }

  test('the Python example writes valid files', {
    skip: !has('python3') && 'python3 is not installed',
  }, () => {
    assertValid(
      dropped(() =>
        spawnSync('python3', ['-c', example('export-format', 'python-writer')], {
          cwd: folder,
          encoding: 'utf8',
        }),
      ),
    );
  });
});
