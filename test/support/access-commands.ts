/** Commands on one data folder with two accounts and three subscriptions, and assertions on their results. */
import assert from 'node:assert/strict';
import { runToEnd } from './command.ts';
import { testFolder } from './test-folder.ts';

export const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** The options of a key that reads subscription 7001. */
export const READ_7001 = [
  ...['--account', 'acme', '--name', 'Test'],
  ...['--scopes', 'detections:read', '--subscriptions', '7001'],
];

/** The data folder, shared by all tests of a file. */
export const root = testFolder();

/** Runs one command on the shared data folder, unless it names another. */
export const wirewatch = async (...args: string[]) => runToEnd(args, { WIREWATCH_DATA: root });

/** What a command prints that must succeed, without a word on stderr. */
export async function printed(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await wirewatch(...args);
  assert.deepEqual([status, stderr], [0, '']);
  return stdout;
}

export const json = async (...args: string[]) => JSON.parse(await printed(...args, '--json'));

/** Runs a command that must fail: with this exit code, a reason on stderr, and no output. */
export async function failing(code: number, message: RegExp, ...args: string[]): Promise<void> {
  const { status, stdout, stderr } = await wirewatch(...args);
  assert.deepEqual([status, stdout], [code, ''], `${args.join(' ')}: ${stderr}`);
  assert.match(stderr, message);
}

export const createKey = (...more: string[]) => json('key', 'create', ...READ_7001, ...more);

await json('account', 'add', 'acme', '--name', 'Acme News');
await json('account', 'add', 'other', '--name', 'Other');
await json('subscription', 'add', '7001', '--account', 'acme');
await json('subscription', 'add', '7002', '--account', 'acme', '--content-types', 'text');
await json('subscription', 'add', '8001', '--account', 'other');
