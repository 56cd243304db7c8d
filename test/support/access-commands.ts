/** Commands on one data folder with two accounts and three subscriptions, and assertions on their results. */
import assert from 'node:assert/strict';
import { before } from 'node:test';
import { runBeside } from './command.ts';
import { testFolder } from './test-folder.ts';

export const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** The options of a key that reads subscription 7001. */
export const READ_7001 = [
  ...['--account', 'acme', '--name', 'Test'],
  ...['--scopes', 'detections:read', '--subscriptions', '7001'],
];

export interface End {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The data folder, shared by all tests of a file. */
export const root = testFolder();

/** Call it once, at the top of a test file. */
export function prepareAccess(): void {
  before(async () => {
    await json('account', 'add', 'acme', '--name', 'Acme News');
    await json('account', 'add', 'other', '--name', 'Other');
    await json('subscription', 'add', '7001', '--account', 'acme');
    await json('subscription', 'add', '7002', '--account', 'acme', '--content-types', 'text');
    await json('subscription', 'add', '8001', '--account', 'other');
  });
}

/** Runs one command on the shared data folder, unless it names another. */
export async function wirewatch(...args: string[]): Promise<End> {
  const { status, stdout, stderr } = await runBeside(args, { WIREWATCH_DATA: root });
  return { code: status, stdout, stderr };
}

export async function json(...args: string[]) {
  const { code, stdout, stderr } = await wirewatch(...args, '--json');
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  return JSON.parse(stdout);
}

/** Runs a command that must fail: with this exit code, a reason on stderr, and no output. */
export async function failing(code: number, message: RegExp, ...args: string[]): Promise<void> {
  const end = await wirewatch(...args);
  assert.equal(end.code, code, `${args.join(' ')}: ${end.stderr}`);
  assert.match(end.stderr, message);
  assert.equal(end.stdout, '');
}

export function createKey(...more: string[]) {
  return json('key', 'create', ...READ_7001, ...more);
}
