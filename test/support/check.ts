/** Runs `wirewatch check` and returns its findings. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../../src/check/finding.ts';
import { runToEnd, succeed } from './command.ts';
import { inFolder, type RunningProgram, serve } from './program.ts';

export type Checked = ReturnType<typeof findingsOf>;

export async function check(data: string, ...args: string[]): Promise<Checked> {
  const { status, stdout, stderr } = runToEnd(['check', '--json', '--data', data, ...args]);
  return findingsOf(status, stdout, stderr);
}

export const checked = async (run: RunningProgram): Promise<Checked> =>
  findingsOf(await run.ended, run.stdout(), run.stderr());

function findingsOf(code: number | null, stdout: string, stderr: string) {
  assert.equal(stderr, '');
  const findings: Finding[] = JSON.parse(stdout);
  for (const finding of findings) {
    assert.deepEqual(Object.keys(finding), ['check', 'status', 'detail', 'what_to_do']);
    assert.equal(finding.what_to_do === null, finding.status === 'ok', JSON.stringify(finding));
  }
  return {
    code,
    findings,
    of: (name: string) =>
      findings.find((finding) => finding.check === name) ??
      assert.fail(`${name} was not checked: ${JSON.stringify(findings)}`),
  };
}

/** Runs a test on an installation with an account, which has never been started. @param use its data folder is below the other */
export const withAccount = (use: (data: string, folder: string) => Promise<void>) =>
  inFolder(async (folder) => {
    const data = join(folder, 'data');
    succeed(['account', 'add', 'acme', '--name', 'Acme', '--data', data]);
    await use(data, folder);
  });

export async function startAndStop(data: string): Promise<void> {
  await (await serve(data)).stop();
}

/**
 * Every path below a folder, with size, mode, inode and time, except what a running program writes by itself: its
 * write-ahead logs, and what it notes of them.
 */
export function snapshot(folder: string): string[] {
  return (
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      // A draft of the running program may be gone a moment later.
      .filter((name) => !String(name).endsWith('.tmp'))
      .filter((name) => !/-(wal|shm|checkpoint)$/.test(name))
      .map((name) => {
        const { size, mode, mtimeMs, ino } = statSync(join(folder, name));
        return [name, size, mode, ino, name.includes('drop') ? '' : mtimeMs].join(' ');
      })
      .sort()
  );
}
