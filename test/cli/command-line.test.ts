/** The frame of the command line: exit codes, messages, common options, output, the log's form. */
import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import type { Command } from 'commander';
import { resolveDataFolder } from '../../src/cli/data-folder.ts';
import { instantValue, integerValue, listValue, switchValue } from '../../src/cli/options.ts';
import { type Column, createProgress, table } from '../../src/cli/output.ts';
import { createProgram } from '../../src/cli/program.ts';
import { counted } from '../../src/counted.ts';
import { withoutSecrets } from '../../src/log.ts';
import { printable } from '../../src/printable.ts';
import { inFolder, runProgram } from '../support/program.ts';
import { onTerminal, terminalMissing } from '../support/terminal.ts';

const root = path.join(import.meta.dirname, '..', '..');
const source = (file: string) => JSON.stringify(pathToFileURL(path.join(root, 'src', file)).href);

function cleanEnv(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('WIREWATCH_'));
  return { ...Object.fromEntries(own), ...env };
}

function wirewatch(...args: string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, ['dist/main.cjs', ...args], {
    cwd: root,
    encoding: 'utf8',
    env: cleanEnv(),
  });
}

/** Runs a few lines as a module of their own, for ends that no command has at hand. */
function script(code: string, env: Record<string, string> = {}): SpawnSyncReturns<string> {
  const args = ['--input-type=module', '--eval', code];
  return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', env: cleanEnv(env) });
}

/** The end of a command that throws this. */
function endOf(thrown: string, env: Record<string, string> = {}): SpawnSyncReturns<string> {
  return script(
    `import { reportEnd } from ${source('cli/program.ts')};
     import { Refused } from ${source('refused.ts')};
     process.exitCode = reportEnd(${thrown});`,
    env,
  );
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

test('--version and version tell version, commit and runtime', () => {
  const flag = wirewatch('--version');
  assert.equal(flag.status, 0);
  assert.match(
    flag.stdout,
    /^wirewatch \d+\.\d+\.\d+ \(commit \S+, Node \d+\.\d+\.\d+, SQLite \S+, \S+\)\n$/,
  );
  assert.equal(wirewatch('version', '--version').stdout, flag.stdout);
  assert.equal(wirewatch('version').stdout, flag.stdout);
});

test('an older Node is told which one is needed, and gets the command that runs it there, exit 78', () => {
  // As if: the program asks process.versions alone. The real thing follows where this machine has one.
  const pretended = ['--import', `data:text/javascript,${encodeURIComponent(PRETEND_NODE_20)}`];
  const runs: [string, string[]][] = [[process.execPath, pretended]];
  for (const node of otherNodes()) {
    const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout;
    if (Number(/^v(\d+)/.exec(version)?.[1]) < 24) runs.push([node, []]);
  }
  for (const [node, options] of runs) {
    const end = spawnSync(node, [...options, 'dist/main.cjs', 'check', '--data', "it's here"], {
      cwd: root,
      encoding: 'utf8',
      env: cleanEnv(),
    });
    assert.equal(end.status, 78, end.stderr);
    assert.equal(end.stdout, '');
    const [said, command = ''] = end.stderr.split('\n');
    assert.match(
      said ?? '',
      /^wirewatch: this is Node 2\d\.[\d.]+, but Wirewatch needs Node 24 or newer\. Run it with:$/,
    );
    const again = spawnSync('sh', ['-c', command.replace(/ check .*/, ' version')], { encoding: 'utf8' });
    assert.match(again.stdout, /Node 24\./);
    assert.match(command, / check --data 'it'\\''s here'$/);
  }
});

const PRETEND_NODE_20 =
  "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })";

/** Every `node` on the PATH but those that npm put there. */
function otherNodes(): string[] {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders
    .filter((folder) => path.isAbsolute(folder) && !folder.includes('node_modules'))
    .map((folder) => path.join(folder, 'node'))
    .filter((file) => existsSync(file));
}

test('licenses, run from the sources, says where licences lie then', () => {
  const options = { cwd: root, encoding: 'utf8', env: cleanEnv() } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['src/main.ts', 'licenses'], options);
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /Each package in node_modules contains its own licence/);
});

test('licenses names packages that come inside others, too', () => {
  const { status, stdout, stderr } = wirewatch('licenses', '--json');
  assert.equal(status, 0, stderr);
  const names = JSON.parse(stdout).map(({ name }: { name: string }) => name);
  for (const name of ['tar', '@isaacs/fs-minipass', 'chownr', 'minipass', 'minizlib', 'yallist'])
    assert.ok(names.includes(name), name);
  for (const name of ['tldts', 'tldts-core']) assert.ok(names.includes(name), name);
});

test('no executable is made with a Node that takes code from the environment', () => {
  const args = ['build/executable.mjs', '--target', 'darwin-arm64'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /newest Node for darwin-arm64 is 24\.0\.0.*NODE_OPTIONS/);
});

test('no file is bundled that has code of another package inside, as its source map tells', () => {
  const refusal = (...inputs: string[]) => {
    const code = `import { refuseHidden } from './build/licenses.mjs'; refuseHidden('.', ${JSON.stringify(inputs)});`;
    const args = ['--input-type=module', '--eval', code];
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' }).stderr;
  };
  for (const input of ['node_modules/tar/dist/esm/index.min.js', 'node_modules/tldts/dist/cjs/index.js'])
    assert.match(refusal(input), /contains code of another package/, input);
  const own = ['node_modules/tar/dist/esm/index.js', 'node_modules/tldts/dist/es6/index.js'];
  assert.equal(refusal('src/main.ts', 'node_modules/fast-copy/dist/cjs/index.cjs', ...own), '');
});

test('common options are taken before and after the command', () => {
  for (const args of [
    ['version', '--json', '--data', 'x'],
    ['--data', 'x', '--json', 'version'],
    ['--json', 'version', '--data=x'],
  ]) {
    const { status, stdout, stderr } = wirewatch(...args);
    assert.deepEqual([status, stderr], [0, '']);
    assert.equal(JSON.parse(stdout).node, process.versions.node);
  }
});

test('a command whose defaults are its own says so in its help', () => {
  for (const [command, data] of [
    ['serve', './wirewatch-data'],
    ['demo', './wirewatch-demo'],
    ['setup', '/var/lib/wirewatch'],
  ] as const) {
    const { stdout } = wirewatch(command, '--help');
    const [, said = ''] = /--data <dir>\s+data folder \(default: ([^)]*)\)/.exec(stdout) ?? [];
    assert.ok(said.replace(/\s+/g, ' ').includes(`WIREWATCH_DATA, else ${data}`), `${command}: ${said}`);
  }
});

test('--json is in the help of a command that prints a result only, and says what it prints', () => {
  assert.match(wirewatch('status', '--help').stdout, /--json +print the result as JSON/);
  assert.match(wirewatch('demo', '--help').stdout, /--json +print the sample keys and the commands as JSON/);
  assert.doesNotMatch(wirewatch('serve', '--help').stdout, /--json/);
});

test('--help is on stdout with examples, exit 0', () => {
  for (const args of [['--help'], ['-h'], ['help'], ['version', '--help'], ['help', 'version']]) {
    const { status, stdout, stderr } = wirewatch(...args);
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    assert.match(stdout, /^Usage: wirewatch/);
    assert.match(stdout, /--data <dir>/);
    assert.match(stdout, /\nExamples:\n {2}wirewatch /);
  }
});

test('wrong usage is exit 2 with a hint on stderr and nothing on stdout', () => {
  const cases: [string[], RegExp][] = [
    [[], /^Usage: wirewatch/],
    [
      ['vresion'],
      /^wirewatch: unknown command 'vresion'\n\(Did you mean version\?\)\nTry: wirewatch --help\n$/,
    ],
    [['version', '--jsno'], /^wirewatch: unknown option '--jsno'[\s\S]*Try: wirewatch version --help\n$/],
    [['--jsno', 'version'], /^wirewatch: unknown option '--jsno'/],
    [['version', 'extra'], /^wirewatch: too many arguments/],
    [['version', '--data'], /^wirewatch: option '--data <dir>' argument missing/],
    [
      ['version', '--data', ''],
      /^wirewatch: '' is not a valid --data <dir>\. Expected a path, but the value is empty/,
    ],
    [['help', 'vresion'], /^wirewatch: unknown command 'vresion'\n\(Did you mean version\?\)/],
    [['removed', '--help'], /^wirewatch: unknown command 'removed'/],
    [['--data', 'x', 'key', 'creat', '-h'], /^wirewatch: unknown command 'creat'\n\(Did you mean create\?\)/],
    [
      ['manual', 'quickstart'],
      /^wirewatch: the manual has no topic "quickstart"\. Did you mean quick-start\? To list the topics, run: wirewatch manual\n$/,
    ],
  ];
  for (const [args, expected] of cases) {
    const { status, stdout, stderr } = wirewatch(...args);
    assert.equal(status, 2, args.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, expected);
  }
});

test('every command has a description; every one that does something has examples of itself', async () => {
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

test('a refusal becomes its exit code and is shown in full', () => {
  for (const [code, status] of [
    ['usage', 2],
    ['invalid_request', 2],
    ['configuration', 78],
    ['failed', 1],
    ['not_found', 1],
  ] as const) {
    const end = endOf(`new Refused('${code}', 'two\\nlines')`);
    assert.deepEqual([end.status, end.stdout, end.stderr], [status, '', 'wirewatch: two\nlines\n']);
  }
});

test('a fault is one line and exit 1, its stack only with WIREWATCH_DEBUG=1', () => {
  const fault = "new Error('disk\\ngone', { cause: new Error('why') })";
  const end = endOf(fault);
  assert.equal(end.status, 1);
  assert.match(end.stderr, /^wirewatch: disk gone \(set WIREWATCH_DEBUG=1 [^\n]*\)\n$/);
  const debugged = endOf(fault, { WIREWATCH_DEBUG: '1' });
  assert.equal(debugged.status, 1);
  assert.match(debugged.stderr, /^wirewatch: disk gone\nError: disk[\s\S]*\n {4}at [\s\S]*why/);
  assert.match(endOf("'only text'").stderr, /^wirewatch: only text /);
});

test('keys, tokens and passwords that were typed in a wrong place are not repeated', () => {
  const id = 'abcdefghij23';
  const secrets = ['afjbqemm7ynjcxpiwfpzdzrmaan5blcqm7lj3jndh5ser3venbui', 'S3cr_et-Of_a_token', 'hunter2'];
  const [key, token, password] = [`ww_live_${id}_${secrets[0]}`, `ww_token_${id}_${secrets[1]}`, secrets[2]];
  const address = `https://agency:${password}@api.example.com/`;
  const ends = [
    wirewatch(key),
    wirewatch(`--${key}`),
    wirewatch('serve', '--port', token),
    wirewatch('serve', '--base-url', address),
    wirewatch('pull', '--base-url', address, '--into', 'copy', '--key-file', 'key'),
    endOf(`new Error('${address} refused ${key}', { cause: new Error('${token}') })`, {
      WIREWATCH_DEBUG: '1',
    }),
  ];
  for (const { status, stdout, stderr } of ends) {
    assert.notEqual(status, 0, stderr);
    assert.match(stderr, /^wirewatch: [\s\S]*\[redacted\]/);
    for (const secret of secrets) assert.ok(!`${stdout}${stderr}`.includes(secret), stderr);
  }
});

test('a wrong configuration ends in 78', () => {
  const end = script(
    `import { reportEnd } from ${source('cli/program.ts')};
     import { loadConfig } from ${source('config/load.ts')};
     try { loadConfig({ flags: {}, env: process.env, file: undefined, dataFolder: '/nonexistent' }); }
     catch (error) { process.exitCode = reportEnd(error); }`,
    { WIREWATCH_SERVER_PORT: 'x' },
  );
  assert.equal(end.status, 78);
  assert.match(end.stderr, /^wirewatch: WIREWATCH_SERVER_PORT: expected/);
});

test('a reader that goes away ends the program quietly', async () => {
  const child = spawn(process.execPath, ['dist/main.cjs', '--help'], { cwd: root, env: cleanEnv() });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [status, signal] = await once(child, 'close');
  assert.deepEqual([status, signal, stderr], [0, null, '']);
});

test('the data folder: flag, then WIREWATCH_DATA, then a folder here; the demo has its own', () => {
  assert.equal(resolveDataFolder({ data: 'a' }, { env: { WIREWATCH_DATA: '/b' } }), path.resolve('a'));
  assert.equal(resolveDataFolder({ data: undefined }, { env: { WIREWATCH_DATA: '/b' } }), path.resolve('/b'));
  assert.equal(
    resolveDataFolder({ data: undefined }, { env: { WIREWATCH_DATA: '' } }),
    path.resolve('wirewatch-data'),
  );
  assert.equal(resolveDataFolder({ data: undefined }, { env: {} }), path.resolve('wirewatch-data'));
  assert.equal(
    resolveDataFolder({ data: undefined }, { env: {}, kind: 'demo' }),
    path.resolve('wirewatch-demo'),
  );
});

test('option values', () => {
  assert.equal(instantValue('2026-11-21T10:00:00+01:00'), Date.UTC(2026, 10, 21, 9));
  assert.throws(() => instantValue('2026-11-21'), /Expected a time/);
  assert.equal(integerValue(0)('12'), 12);
  for (const text of ['', '-1', '1.0', '01', '+1', '1e3', '9007199254740993']) {
    assert.throws(() => integerValue(0)(text), /whole number of at least 0/, text);
  }
  assert.throws(() => integerValue(1, 9)('10'), /from 1 to 9/);
  assert.deepEqual([switchValue('on'), switchValue('off')], [true, false]);
  assert.throws(() => switchValue('yes'), /on or off/);
  assert.deepEqual(listValue('a, b,a'), ['a', 'b']);
  assert.throws(() => listValue('a,'), /without empty items/);
});

test('a table is aligned, and what comes from outside cannot steer the terminal', () => {
  const rows = [
    { name: 'Zoë', rows: 5 },
    { name: 'evil\u001b[2J\n', rows: null },
  ];
  const shown = table(rows, [
    { title: 'NAME', value: (row) => row.name },
    { title: 'ROWS', value: (row) => row.rows, align: 'right' },
  ]);
  assert.equal(
    shown,
    ['NAME             ROWS', 'Zoë                 5', 'evil\\u001b[2J\\n     -'].join('\n'),
  );
  assert.equal(printable('a\tb\nc\r\u202e'), 'a\tb\nc\\u000d\\u202e');
  assert.equal(table([], [{ title: 'NAME', value: () => '' }]), 'NAME');
});

test('columns for which a line has no room stand below their row, wrapped, and a command in one piece', () => {
  const columns: Column<{ name: string; since: string | null; what: string }>[] = [
    { title: 'NAME', value: (row) => row.name },
    { title: 'SINCE', value: (row) => row.since },
    { title: 'TO DO', value: (row) => row.what },
  ];
  const rows = [
    {
      name: 'disk full',
      since: '2026-11-21T10:10:00Z',
      what: 'Make room on the disk, then run: wirewatch window reset newswire --all',
    },
    { name: 'late', since: null, what: '-' },
  ];
  assert.deepEqual(table(rows, columns, 40).split('\n'), [
    'NAME       SINCE',
    'disk full  2026-11-21T10:10:00Z',
    '    to do: Make room on the disk, then',
    '    run:',
    '    wirewatch window reset newswire --all',
    'late       -',
  ]);
  assert.deepEqual(table(rows, columns, 30).split('\n').slice(0, 4), [
    'NAME',
    'disk full',
    '    since:',
    '    2026-11-21T10:10:00Z',
  ]);
  assert.equal(table(rows, columns, null).split('\n').length, 3);
});

test('numbers have separators from five digits on, and agree with their noun', () => {
  assert.deepEqual(
    [counted(1, 'key'), counted(0, 'key'), counted(9999, 'key'), counted(12_000, 'key')],
    ['1 key', '0 keys', '9999 keys', '12,000 keys'],
  );
});

describe('on a terminal', { skip: terminalMissing }, () => {
  const shownBy = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const run = runProgram(args, { TERM: 'xterm-256color', ...env }, { through: onTerminal });
    await run.ended;
    return run.printed();
  };

  test('findings have colours, unless NO_COLOR says otherwise', () =>
    inFolder(async (folder) => {
      const args = ['check', '--data', path.join(folder, 'data'), '--port', '0'];
      assert.match(await shownBy(args, {}), /\u001b\[32mok\u001b\[39m +configuration/);
      assert.doesNotMatch(await shownBy(args, { NO_COLOR: '1' }), /\u001b\[3\dm/);
    }));

  test('the manual goes through the pager, and is printed where there is none', async () => {
    const paged = await shownBy(['manual', 'alerts'], { PAGER: 'sed s/^/PAGED:/' });
    assert.match(paged, /PAGED:ALERTS/);
    for (const PAGER of ['', '/nonexistent/pager']) {
      const printed = await shownBy(['manual', 'alerts'], { PAGER });
      assert.match(stripVTControlCharacters(printed), /^ALERTS\r?$/m);
      assert.doesNotMatch(printed, /PAGED/);
    }
  });
});

test('progress redraws one line at most ten times a second, on a terminal only', () => {
  const drawn: string[] = [];
  const stream = { isTTY: true, columns: 40, write: (text: string) => drawn.push(text) };
  let nowMs = 0;
  const shown = createProgress({ stream, now: () => nowMs });
  for (; nowMs < 2000; nowMs += 10) shown.update('rows', nowMs * 30, 60_000);
  shown.end();
  assert.equal(drawn.length, 21);
  assert.equal(drawn[19], '\r\x1b[2Krows  57,000  95%  30,000/s');
  assert.equal(drawn[20], '\r\x1b[2K');

  const piped: string[] = [];
  const silent = createProgress({ stream: { write: (text: string) => piped.push(text) } });
  silent.update('rows', 1);
  silent.end();
  assert.deepEqual(piped, []);
});

test('a log line is JSON on stderr with level, time and msg, written also when the process exits at once', () => {
  const end = script(
    `import { createLogger } from ${source('log.ts')};
     const log = createLogger({ level: 'info' });
     log.debug('unseen');
     log.info({ url: 'http://127.0.0.1:1' }, 'listening');
     log.child({ token: 'S3CRET', id: 7 }).child({ apiKey: 'S3CRET' }).warn({ headers: { Authorization: 'S3CRET' } }, 'x');
     log.error(Object.assign(new Error('no'), { code: 'EIO', secret: 'S3CRET', cause: new Error('why') }), 'failed');
     process.exit(3);`,
  );
  assert.equal(end.status, 3);
  assert.equal(end.stdout, '');
  assert.ok(!end.stderr.includes('S3CRET'), end.stderr);
  const lines = end.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.length, 3);
  const [listening, child, failed] = lines;
  assert.deepEqual(Object.keys(listening), ['level', 'time', 'url', 'msg']);
  assert.deepEqual([listening.level, listening.msg], ['info', 'listening']);
  assert.match(listening.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual([child.id, child.token, child.headers.Authorization], [7, '[redacted]', '[redacted]']);
  assert.deepEqual(Object.keys(failed.err), ['type', 'message', 'code', 'stack', 'cause']);
  assert.deepEqual([failed.err.code, failed.err.cause.message, failed.msg], ['EIO', 'why', 'failed']);
});

test('secrets are blotted out by name at any depth, and within addresses; ids stay', () => {
  const clean = withoutSecrets({
    a: [{ client_secret: 's', key_id: 'k1', 'x-api-key': 's', signature: 1, key: null }],
    url: '/photos/5?a=1&signature=abc-_.x&b=2',
    header: 'Bearer ww_abc.def',
    err: new Error('GET /x?access_token=abc failed'),
    text: 'key=ww_live_abcdefghij23_secret, https://user:pass@example.com/a@b and ww_token_abcdefghij23_a-b_c.',
    bytes: Buffer.from('abc'),
  });
  assert.deepEqual(clean.a, [
    {
      client_secret: '[redacted]',
      key_id: 'k1',
      'x-api-key': '[redacted]',
      signature: '[redacted]',
      key: null,
    },
  ]);
  assert.equal(clean.url, '/photos/5?a=1&signature=[redacted]&b=2');
  assert.equal(clean.header, 'Bearer [redacted]');
  assert.match(JSON.stringify(clean.err), /access_token=\[redacted\] failed/);
  assert.equal(
    clean.text,
    'key=ww_live_abcdefghij23_[redacted], https://[redacted]@example.com/a@b and ww_token_abcdefghij23_[redacted]',
  );
  assert.equal(clean.bytes, '[3 bytes]');
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  assert.doesNotThrow(() => JSON.stringify(withoutSecrets(circle)));
});
