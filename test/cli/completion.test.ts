/** `wirewatch completion`: its scripts, run in the real shells if installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { SHELLS } from '../../src/cli/completion.ts';
import { onPath, succeed } from '../support/command.ts';
import { without } from '../support/installed.ts';
import { testFolder } from '../support/test-folder.ts';

const scripts = new Map<string, string>(
  SHELLS.map((shell) => [shell, succeed(['completion', shell]).stdout]),
);

/** Scripts that print what a shell offers after the words; the last word may be incomplete. */
const ASK: Readonly<Record<string, { args: string[]; code: string }>> = {
  bash: {
    args: ['--norc', '-c'],
    code: `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wirewatch; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  zsh: {
    args: ['-f', '-c'],
    // Replaces the parts of the completion system that the script calls, and prints their arguments.
    code: `compdef() { :; }; source "$0"; _files() { :; }
      compadd() { print -rl -- "\${candidates[@]}"; }
      typeset -a words; words=("$@"); CURRENT=$#; _wirewatch`,
  },
  fish: {
    args: ['--no-config', '-c'],
    code: 'set -l script $argv[1]; set -l line "$argv[2..-1]"; source $script; complete -C "$line" | string replace -r "\\t.*" ""',
  },
};

function offered(shell: string, ...words: string[]): string[] {
  const folder = testFolder();
  const file = join(folder, 'script');
  writeFileSync(file, scripts.get(shell) ?? '');
  const { args, code } = ASK[shell] ?? { args: [], code: '' };
  const { stdout, stderr } = spawnSync(shell, [...args, code, file, 'wirewatch', ...words], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, HOME: folder, PATH: onPath(folder) },
  });
  assert.equal(stderr, '');
  const lines = stdout.split('\n').filter((line) => line !== '' && !['script', 'wirewatch'].includes(line));
  return lines.sort();
}

for (const shell of SHELLS)
  describe(shell, { skip: without(shell) }, () => {
    test('completes commands, also subcommands and after options', () => {
      assert.deepEqual(offered(shell, 'ke'), ['key']);
      const below = ['create', 'generate', 'list', 'revoke', 'rotate', 'set', 'show'];
      const plain = (words: string[]) => words.filter((word) => !word.startsWith('-'));
      assert.deepEqual(plain(offered(shell, 'key', '')), below);
      assert.deepEqual(offered(shell, '--data', 'x', 'key', 'ro'), ['rotate']);
      assert.ok(offered(shell, '').includes('completion'));
    });

    test("completes the command's and common options, and known values", () => {
      assert.deepEqual(offered(shell, 'key', 'rotate', '--o'), ['--overlap']);
      assert.deepEqual(offered(shell, 'key', 'rotate', '--js'), ['--json']);
      assert.deepEqual(offered(shell, 'key', 'list', '--o'), []);
      assert.deepEqual(offered(shell, 'manual', 'client-'), ['client-guide']);
      assert.deepEqual(offered(shell, 'completion', 'z'), ['zsh']);
    });

    test('completes other option values as file names', () => {
      assert.deepEqual(offered(shell, 'pull', '--into', 'ke'), []);
    });
  });
