/** Which keys, files and options `wirewatch pull` refuses. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inFolder } from '../../support/program.ts';
import { pulled, subscription, withService } from '../../support/pull.ts';

test('the key file may be the output of key create --json', () =>
  withService([subscription(7001, 'text')], [], async (to, folder) => {
    const args = [...to, '--into', join(folder, 'copy.db')];
    writeFileSync(join(folder, 'key'), JSON.stringify({ id: 'x', key: 'ww_live_x' }, null, 2));
    const { code, stderr } = await pulled(args);
    assert.equal(code, 0, stderr);
    for (const wrong of ['{"id":"x"}', '{"key":']) {
      writeFileSync(join(folder, 'key'), wrong);
      const refused = await pulled(args);
      assert.deepEqual(
        [refused.code, /does not contain an API key/.test(refused.stderr)],
        [1, true],
        refused.stderr,
      );
    }
  }));

test('no key file, and one without a key', () =>
  inFolder(async (folder) => {
    const options = [
      'pull',
      '--base-url',
      'http://127.0.0.1:1',
      '--into',
      join(folder, 'copy.db'),
      '--key-file',
    ];
    const missing = await pulled([...options, join(folder, 'none')]);
    assert.deepEqual([missing.code, /there is no key file/.test(missing.stderr)], [1, true], missing.stderr);
    writeFileSync(join(folder, 'key'), 'two words');
    const wrong = await pulled([...options, join(folder, 'key')]);
    assert.deepEqual([wrong.code, /does not contain an API key/.test(wrong.stderr)], [1, true], wrong.stderr);
    assert.ok(!wrong.stderr.includes('two words'), "the file's content must not be shown");
  }));

test('a file that is not a copy, or lacks lines, is not changed', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'key'), 'ww_live_x');
    const into = join(folder, 'notes.txt');
    const options = ['--key-file', join(folder, 'key'), '--format', 'ndjson', '--into', into];
    const args = ['pull', '--base-url', 'http://127.0.0.1:1', ...options];
    writeFileSync(into, 'my notes');
    const foreign = await pulled(args);
    assert.deepEqual([foreign.code, /already exists, but is not a copy/.test(foreign.stderr)], [1, true]);
    writeFileSync(
      `${into}.place`,
      JSON.stringify({ bytes: 100, cursor: 'x', walk: null, streams: null, since: null }),
    );
    const shorter = await pulled(args);
    assert.deepEqual(
      [shorter.code, /lines are missing.*--into/.test(shorter.stderr)],
      [1, true],
      shorter.stderr,
    );
    assert.equal(readFileSync(into, 'utf8'), 'my notes');
  }));

test('an invalid base address, format or wait, and --since with --full', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'key'), 'ww_live_x');
    const common = ['pull', '--key-file', join(folder, 'key'), '--into', join(folder, 'copy.db')];
    for (const wrong of [
      ['--base-url', 'ftp://x'],
      ['--base-url', 'http://127.0.0.1:1', '--format', 'xml'],
      ['--base-url', 'http://127.0.0.1:1', '--full', '--since', '2026-01-01T00:00:00Z'],
      ['--base-url', 'http://127.0.0.1:1', '--poll-seconds', '86401'],
    ]) {
      assert.equal((await pulled([...common, ...wrong])).code, 2, wrong.join(' '));
    }
  }));
