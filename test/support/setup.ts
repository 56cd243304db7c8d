/** Runs `wirewatch setup` below a temporary root. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';

export const MAIN = path.join(import.meta.dirname, '..', '..', 'dist', 'main.cjs');

export const CONFIG = '/etc/wirewatch/wirewatch.toml';

export const UNIT = '/etc/systemd/system/wirewatch.service';

export const USER = '/etc/sysusers.d/wirewatch.conf';

/** A program that exists on every system, and is not in a home folder. */
export const PROGRAM = '/bin/sh';

export const scratch = mkdtempSync(path.join(tmpdir(), 'wirewatch-setup-'));

after(() => rmSync(scratch, { recursive: true }));

let roots = 0;

export function newRoot(): string {
  roots += 1;
  const root = path.join(scratch, String(roots));
  mkdirSync(path.join(root, path.dirname(PROGRAM)), { recursive: true });
  writeFileSync(path.join(root, PROGRAM), '');
  return root;
}

export function wirewatch(...args: string[]) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('WIREWATCH_'));
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', env: Object.fromEntries(own) });
}

export interface Result {
  readonly dry_run: boolean;
  readonly files: readonly { what: string; path: string; outcome: string; reason?: string; text?: string }[];
  readonly not_applied: readonly string[];
  readonly next: readonly string[];
}

/** Sets up a service below a root; @returns the parsed output of `--json` */
export function setup(root: string, ...more: string[]): Result {
  const { stdout, stderr } = wirewatch(
    'setup',
    '--json',
    '--root',
    root,
    '--service',
    '--program',
    PROGRAM,
    ...more,
  );
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

/** Runs a setup that must be refused with this exit code. @returns its message */
export function refused(status: number, ...args: string[]): string {
  const end = wirewatch('setup', '--root', newRoot(), '--service', '--program', PROGRAM, ...args);
  assert.deepEqual([end.status, end.stdout], [status, ''], end.stderr);
  return end.stderr;
}

export function outcomes({ files }: Result): string[] {
  return files.map(({ path, outcome }) => `${path} ${outcome}`);
}

export const read = (root: string, file: string) => readFileSync(path.join(root, file), 'utf8');

/** All files below a root, without the program. */
export function everyFile(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .filter((name) => name !== PROGRAM.slice(1))
    .sort();
}
