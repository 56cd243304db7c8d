/** The command line in general: exit codes, messages, help, common options, option values. */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Command } from 'commander';
import { addCommonOptions, commandFolder } from '../../src/cli/options.ts';
import { createProgram } from '../../src/cli/program.ts';
import { runToEnd, succeed } from '../support/command.ts';
import { ACCOUNT, folder, SUBSCRIPTION, TERMS, written } from '../support/preseed.ts';
import { cleanEnv, runScript, source } from '../support/scripts.ts';
import { shellWords } from '../support/shell-words.ts';
import { words } from '../support/words.ts';

const wirewatch = (...args: string[]) => runToEnd(args);

const root = path.join(import.meta.dirname, '..', '..');

/** What `key create` needs besides. */
const REQUIRED = '--scopes detections:read --subscriptions 7001';

const DEBUG = { WIREWATCH_DEBUG: '1' };

/** Runs a command that throws this. */
function endOf(thrown: string, env: Record<string, string> = {}): SpawnSyncReturns<string> {
  return runScript(
    `import { reportEnd } from ${source('cli/program.ts')};
     import { Refused } from ${source('refused.ts')};
     process.exitCode = reportEnd(${thrown});`,
    env,
  );
}

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

test('--version prints version, commit and runtime', () => {
  const { stdout } = succeed(['--version']);
  assert.match(stdout, /^wirewatch \d+\.\d+\.\d+ \(commit \S+, Node \d+\.\d+\.\d+, SQLite \S+, \S+\)\n$/);
  assert.equal(succeed(['manual', '--version']).stdout, stdout);
});

test('common options are accepted before and after the command', () => {
  for (const line of ['manual --json --data x', '--data x --json manual', '--json manual --data=x']) {
    const { status, stdout, stderr } = wirewatch(...line.split(' '));
    assert.deepEqual([status, stderr], [0, '']);
    assert.ok(JSON.parse(stdout).length > 10);
  }
});

test('--help is on stdout with examples, exit 0', () => {
  for (const args of [['--help'], ['-h'], ['help'], ['manual', '--help'], ['help', 'manual']]) {
    const { status, stdout, stderr } = wirewatch(...args);
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    assert.match(stdout, /^Usage: wirewatch/);
    assert.match(stdout, /--data <dir>/);
    assert.match(stdout, /\nExamples:\n {2}wirewatch /);
  }
});

test('wrong usage is exit 2 with a hint on stderr and nothing on stdout', () => {
  for (const [line, expected] of [
    ['', /^Usage: wirewatch/],
    ['maunal', /^wirewatch: unknown command 'maunal'\n\(Did you mean manual\?\)\nTry: wirewatch --help\n$/],
    ['manual --jsno', /^wirewatch: unknown option '--jsno'[\s\S]*Try: wirewatch manual --help\n$/],
    ['--jsno manual', /^wirewatch: unknown option '--jsno'/],
    ['manual alerts extra', /^wirewatch: too many arguments/],
    ['manual --data', /^wirewatch: option '--data <dir>' argument missing/],
    ["manual --data ''", /'--data <dir>' argument '' is invalid\. Expected a path, but the value is empty/],
    ['help maunal', /^Usage: wirewatch/],
    ['--data x key creat', /^wirewatch: unknown command 'creat'\n\(Did you mean create\?\)/],
    [
      'manual quickstart',
      /^wirewatch: topic: expected one of .*quick-start,.* found "quickstart"\nTry: wirewatch manual --help\n$/,
    ],
  ] as const) {
    const { status, stdout, stderr } = wirewatch(...shellWords(line));
    assert.deepEqual([status, stdout], [2, ''], line);
    assert.match(stderr, expected);
  }
});

test('every command has a description, and every leaf command has examples', async () => {
  const program = await createProgram();
  for (const command of everyCommand(program)) {
    assert.notEqual(command.description(), '', command.name());
    if (command.commands.length > 0) continue;
    const written: string[] = [];
    command.configureOutput({ writeOut: (text) => void written.push(text) });
    command.outputHelp();
    const help = written.join('');
    const [, usage = ''] = /^Usage: (wirewatch(?: [a-z]+)+)/.exec(help) ?? [];
    assert.match(help, new RegExp(`\nExamples:\n {2}${usage}`), usage);
  }
});

test('the help of the program says of a command what the help of that command says', async () => {
  const [unloaded, loaded] = [await createProgram(() => false), await createProgram()];
  const lines = ({ commands }: Command) => commands.map((own) => [own.name(), own.description()]);
  assert.deepEqual(lines(unloaded), lines(loaded));
});

test('a refusal sets its exit code and is shown in full', () => {
  const statuses = { usage: 2, invalid_request: 2, configuration: 78, failed: 1, not_found: 1 };
  for (const [code, status] of Object.entries(statuses)) {
    const end = endOf(`new Refused('${code}', 'two\\nlines')`);
    assert.deepEqual([end.status, end.stdout, end.stderr], [status, '', 'wirewatch: two\nlines\n']);
  }
});

test('a fault is one line and exit 1, its stack only with WIREWATCH_DEBUG=1', () => {
  const fault = "new Error('disk\\ngone', { cause: new Error('why') })";
  const end = endOf(fault);
  assert.equal(end.status, 1);
  assert.match(end.stderr, /^wirewatch: disk gone \(set WIREWATCH_DEBUG=1 [^\n]*\)\n$/);
  const debugged = endOf(fault, DEBUG);
  assert.equal(debugged.status, 1);
  assert.match(debugged.stderr, /^wirewatch: disk gone\nError: disk[\s\S]*\n {4}at [\s\S]*why/);
  assert.match(endOf("'only text'").stderr, /^wirewatch: only text /);
});

test('keys, tokens and passwords in wrong places are not repeated', () => {
  const id = 'abcdefghij23';
  const secrets = ['afjbqemm7ynjcxpiwfpzdzrmaan5blcqm7lj3jndh5ser3venbui', 'S3cr_et-Of_a_token', 'hunter2'];
  const [key, token, password] = [`ww_live_${id}_${secrets[0]}`, `ww_token_${id}_${secrets[1]}`, 'hunter2'];
  const address = `https://agency:${password}@api.example.com/`;
  const redacted = [
    wirewatch(key),
    wirewatch(`--${key}`),
    wirewatch('account', 'show', key),
    ...['account', 'scopes', 'subscriptions'].map((option) =>
      wirewatch(...words(`key create --name x --account x ${REQUIRED} --${option}`), key),
    ),
    wirewatch('serve', '--port', token),
    wirewatch('serve', '--base-url', address),
    wirewatch('pull', '--base-url', address, '--into', 'copy', '--key-file', 'key'),
    runToEnd(['status'], { WIREWATCH_KEYS_PREFIX: key }),
    endOf(`new Error('${address} refused ${key}', { cause: new Error('${token}') })`, DEBUG),
  ];
  for (const { stderr } of redacted) assert.match(stderr, /^wirewatch: [\s\S]*\[redacted\]/);
  const config = written(`${ACCOUNT}${SUBSCRIPTION}[[keys]]\nsecret_file = "foreign"\n${TERMS}`);
  writeFileSync(path.join(folder, 'foreign'), password);
  const left = [
    ...['show', 'revoke', 'rotate', 'set'].map((command) => wirewatch('key', command, key)),
    wirewatch('check', '--config', config, '--data', path.join(folder, 'data')),
  ];
  for (const { status, stdout, stderr } of [...redacted, ...left]) {
    assert.notEqual(status, 0, stderr);
    for (const secret of secrets) assert.ok(!`${stdout}${stderr}`.includes(secret), stderr);
  }
});

test('a closed output pipe ends the program quietly', async () => {
  const child = spawn(process.execPath, ['dist/main.cjs', '--help'], { cwd: root, env: cleanEnv() });
  child.stdout.destroy();
  const [stderr, [status, signal]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  assert.deepEqual([status, signal, stderr], [0, null, '']);
});

test('the data folder: flag, then WIREWATCH_DATA, then a folder here; the demo has its own', (t) => {
  const before = process.env.WIREWATCH_DATA;
  t.after(() => Object.assign(process.env, { WIREWATCH_DATA: before ?? '' }));
  for (const [flag, variable, kind, expected] of [
    [['--data', 'a'], '/b', 'appliance', 'a'],
    [[], '/b', 'appliance', '/b'],
    [[], '', 'appliance', 'wirewatch-data'],
    [[], '', 'demo', 'wirewatch-demo'],
  ] as const) {
    process.env.WIREWATCH_DATA = variable;
    const command = new Command();
    addCommonOptions(command);
    assert.equal(commandFolder(command.parse(flag, { from: 'user' }), kind).root, path.resolve(expected));
  }
});
