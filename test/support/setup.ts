/** Runs `wirewatch setup` with its two files in a temporary folder. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { runToEnd } from './command.ts';
import { testFolder } from './test-folder.ts';

/** A program that exists on every system, and is not in a home folder. */
export const PROGRAM = '/bin/sh';

const scratch = testFolder();

let folders = 0;

export interface Places {
  readonly folder: string;
  readonly config: string;
  readonly unit: string;
}

/** The files of an installation that does not exist yet, in folders that do not exist either. */
export function newPlaces(): Places {
  folders += 1;
  const folder = path.join(scratch, String(folders));
  return {
    folder,
    config: path.join(folder, 'etc', 'wirewatch.toml'),
    unit: path.join(folder, 'system', 'wirewatch.service'),
  };
}

export function wirewatch(...args: string[]) {
  return runToEnd(args);
}

export interface Result {
  readonly files: readonly { what: string; path: string; outcome: string }[];
  readonly next: readonly string[];
}

export function runSetup({ config, unit }: Places, ...more: string[]) {
  return wirewatch('setup', '--config', config, '--unit', unit, '--program', PROGRAM, ...more);
}

/** Sets up a service; @returns the parsed output of `--json` */
export function setup(places: Places, ...more: string[]): Result {
  const { stdout, stderr } = runSetup(places, '--json', ...more);
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

/** Runs a setup that must be refused with this exit code. @returns its message */
export function refused(status: number, ...args: string[]): string {
  const end = runSetup(newPlaces(), ...args);
  assert.deepEqual([end.status, end.stdout], [status, ''], end.stderr);
  return end.stderr;
}

export function outcomes({ files }: Result): string[] {
  return files.map(({ what, outcome }) => `${what} ${outcome}`);
}
