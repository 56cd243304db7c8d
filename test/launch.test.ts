/** A Node that is too old gets a message, not a syntax error. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { cleanEnv } from './support/scripts.ts';

const root = path.join(import.meta.dirname, '..');

test('an older Node gets an error with the required version and a command to run it, exit 78', () => {
  // Pretend another version: the program only reads process.versions. A real old Node is tested below, if installed.
  const pretended = ['--import', `data:text/javascript,${encodeURIComponent(PRETEND_NODE_20)}`];
  const runs: [string, string[]][] = [[process.execPath, pretended]];
  for (const node of otherNodes()) {
    const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout;
    if (Number(/^v(\d+)/.exec(version)?.[1]) < 24) runs.push([node, []]);
  }
  for (const [node, options] of runs) {
    const args = [...options, 'dist/main.cjs', 'check', '--data', "it's here"];
    const end = spawnSync(node, args, { cwd: root, encoding: 'utf8', env: cleanEnv() });
    assert.deepEqual([end.status, end.stdout], [78, ''], end.stderr);
    const [said, command = ''] = end.stderr.split('\n');
    const why = /^wirewatch: this is Node 2\d\.[\d.]+, but Wirewatch needs Node 24 or newer\. Run it with:$/;
    assert.match(said ?? '', why);
    const again = spawnSync('sh', ['-c', command.replace(/ check .*/, ' --version')], { encoding: 'utf8' });
    assert.match(again.stdout, /Node 24\./);
    assert.match(command, / check --data 'it'\\''s here'$/);
  }
});

const PRETEND_NODE_20 =
  "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })";

/** Every `node` on the PATH, except those added by npm. */
function otherNodes(): string[] {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders
    .filter((folder) => path.isAbsolute(folder) && !folder.includes('node_modules'))
    .map((folder) => path.join(folder, 'node'))
    .filter((file) => existsSync(file));
}
