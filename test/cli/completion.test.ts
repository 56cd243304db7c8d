/** `wirewatch completion`: its scripts, run in the real shells if installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { SHELLS } from '../../src/cli/completion.ts';
import { onPath, runBeside } from '../support/command.ts';
import { inFolder } from '../support/program.ts';

const has = (shell: string) => spawnSync(shell, ['--version']).status === 0;
const scripts = new Map<string, string>();

for (const shell of SHELLS) {
  const program = await runBeside(['completion', shell]);
  assert.equal(program.status, 0, program.stderr);
  scripts.set(shell, program.stdout);
}

/** Scripts that print what a shell offers after the words; the last word may be incomplete. */
const ASK: Readonly<Record<string, { program: string; args: string[]; code: string }>> = {
  bash: {
    program: 'bash',
    args: ['--norc', '-c'],
    code: `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wirewatch; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  zsh: {
    program: 'zsh',
    args: ['-f', '-c'],
    // Replaces the parts of the completion system that the script calls, and prints their arguments.
    code: `compdef() { :; }; source "$0"; _files() { :; }
      compadd() { print -rl -- "\${candidates[@]}"; }
      typeset -a words; words=("$@"); CURRENT=$#; _wirewatch`,
  },
  fish: {
    program: 'fish',
    args: ['--no-config', '-c'],
    code: 'set -l script $argv[1]; set -l line "$argv[2..-1]"; source $script; complete -C "$line" | string replace -r "\\t.*" ""',
  },
};

async function offered(shell: string, ...words: string[]): Promise<string[]> {
  let lines: string[] = [];
  await inFolder(async (folder) => {
    const file = join(folder, 'script');
    writeFileSync(file, scripts.get(shell) ?? '');
    const PATH = onPath(folder);
    const { program, args, code } = ASK[shell] ?? { program: '', args: [], code: '' };
    const { stdout, stderr } = spawnSync(program, [...args, code, file, 'wirewatch', ...words], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, HOME: folder, PATH },
    });
    assert.equal(stderr, '');
    lines = stdout.split('\n').filter((line) => line !== '' && !['script', 'wirewatch'].includes(line));
  });
  return lines.sort();
}

for (const shell of SHELLS) {
  describe(shell, { skip: !has(shell) && `${shell} is not installed` }, () => {
    test('completes commands, also subcommands and after options', async () => {
      assert.deepEqual(await offered(shell, 'ke'), ['key']);
      const below = ['create', 'generate', 'list', 'revoke', 'rotate', 'set', 'show'];
      const plain = (words: string[]) => words.filter((word) => !word.startsWith('-'));
      assert.deepEqual(plain(await offered(shell, 'key', '')), below);
      assert.deepEqual(await offered(shell, '--data', 'x', 'key', 'ro'), ['rotate']);
      assert.ok((await offered(shell, '')).includes('completion'));
    });

    test("completes the command's and common options, and known values", async () => {
      assert.deepEqual(await offered(shell, 'key', 'rotate', '--o'), ['--overlap']);
      assert.deepEqual(await offered(shell, 'key', 'rotate', '--js'), ['--json']);
      assert.deepEqual(await offered(shell, 'key', 'list', '--o'), []);
      assert.deepEqual(await offered(shell, 'manual', 'client-'), ['client-guide']);
      assert.deepEqual(await offered(shell, 'completion', 'z'), ['zsh']);
    });

    test('completes other option values as file names', async () => {
      assert.deepEqual(await offered(shell, 'pull', '--into', 'ke'), []);
    });
  });
}
