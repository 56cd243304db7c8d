/** The documents say what is so: settings, commands, endpoints, files and log lines; and their examples run. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { createProgram } from '../src/cli/program.ts';
import { loadConfig } from '../src/config/load.ts';
import { SETTINGS } from '../src/config/schema.ts';
import { PROBLEMS } from '../src/http/problem.ts';
import { OWN_FOLDERS } from '../src/ingest/drop/drop-folder.ts';
import { terminalText } from '../src/manual/terminal.ts';
import { TOPICS } from '../src/manual/topics.ts';
import { openApiDocument } from '../src/openapi/document.ts';
import { example, tableRows, topic, words } from './support/manual.ts';
import { testsByName } from './support/test-files.ts';

const root = path.join(import.meta.dirname, '..');
const read = (name: string) => readFileSync(path.join(root, name), 'utf8');
const readme = read('README.md');
const program = await createProgram();
const manual = new Map(TOPICS.map(({ name, markdown }) => [name, markdown]));
const sourceText = sourceFiles('src').map(read).join('\n');

function sourceFiles(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.join(folder, name));
}

describe('README', () => {
  test('fits into 150 lines', () => {
    assert.ok(readme.split('\n').length <= 151);
  });

  test('its links lead somewhere, and so do those of the other documents', () => {
    for (const document of ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md']) {
      for (const [, target = ''] of read(document).matchAll(/\]\(([^)]+)\)/g)) {
        if (!target.startsWith('#'))
          assert.ok(existsSync(path.join(root, target.replace(/#.*/, ''))), `${document}: ${target}`);
        else
          assert.match(read(document), new RegExp(`^## ${target.slice(1)}$`, 'im'), `${document}: ${target}`);
      }
    }
  });
});

describe('all documents', () => {
  const documents = new Map([
    ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md'].map((name) => [name, read(name)] as const),
    ...manual,
  ]);

  test('every command line in them could be typed', () => {
    let found = 0;
    for (const [name, text] of documents) {
      for (const line of commandLines(text)) {
        found += 1;
        const wrong = judgeCommandLine(line);
        assert.equal(wrong, null, `${name}: ${line}`);
      }
    }
    assert.ok(found > 80, `only ${found} command lines were found`);
    assert.match(judgeCommandLine('wirewatch undo all.db') ?? '', /no command/);
    assert.match(judgeCommandLine('wirewatch serve --colour red') ?? '', /no option/);
    assert.match(judgeCommandLine('wirewatch ingest status now') ?? '', /no argument/);
  });

  test('every setting that is named in them is one, or a member of an answer', () => {
    const sections = [...new Set(SETTINGS.map(({ path }) => path.slice(0, path.lastIndexOf('.'))))];
    const named = new RegExp(`\`((?:${sections.join('|')})\\.[a-z_]+)\``, 'g');
    const settings = new Set(SETTINGS.map(({ path }) => path));
    const answers = JSON.stringify(openApiDocument());
    let found = 0;
    for (const [name, text] of documents) {
      for (const [, setting = ''] of text.matchAll(named)) {
        if (/\.(?:db|json|md|toml|ts)$/.test(setting)) continue;
        found += 1;
        const isMember = answers.includes(`"${setting.slice(setting.lastIndexOf('.') + 1)}":`);
        assert.ok(settings.has(setting) || isMember, `${name}: ${setting}`);
      }
    }
    assert.ok(found > 80, `only ${found} were found`);
  });

  test('every configuration in them could be used', () => {
    const folder = temporaryFolder();
    const file = path.join(folder, 'wirewatch.toml');
    let found = 0;
    for (const [name, text] of documents) {
      for (const [, toml = ''] of text.matchAll(/^```toml\n([\s\S]*?)```$/gm)) {
        found += 1;
        writeFileSync(file, toml);
        const load = () => loadConfig({ flags: {}, env: {}, file, dataFolder: folder });
        assert.doesNotThrow(load, `${name}: ${toml}`);
      }
    }
    rmSync(folder, { recursive: true });
    assert.ok(found > 3, `only ${found} were found`);
  });

  test('every environment variable in them is one that the program reads', () => {
    const settings = new Set(SETTINGS.map(({ variable }) => variable));
    for (const [name, text] of documents) {
      for (const [variable] of text.matchAll(/WIREWATCH_[A-Z_]+/g)) {
        const isRead =
          settings.has(variable) || new RegExp(`env(ironment)?\\.${variable}\\b`).test(sourceText);
        assert.ok(isRead, `${name}: ${variable}`);
      }
    }
  });

  test('every invariant of the manual names tests that are there', () => {
    const [, table = ''] = /^## Promises\n([\s\S]*?)^## /m.exec(read('src/manual/invariants.md')) ?? [];
    const rows = tableRows(table);
    const tests = testsByName(path.join(root, 'test'));
    assert.ok(rows.length >= 20);
    for (const [promise, , cited = ''] of rows) {
      const names = [...cited.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name);
      assert.ok(names.length > 0, promise);
      for (const name of names) assert.ok(tests.has(name), name);
    }
  });

  test('ARCHITECTURE names every room, CHANGELOG the version', () => {
    const rooms = tableRows(read('ARCHITECTURE.md'))
      .map(([room]) => room ?? '')
      .join(' ');
    for (const entry of readdirSync(path.join(root, 'src'), { withFileTypes: true })) {
      const named = `\`${entry.name}${entry.isDirectory() ? '/' : ''}\``;
      assert.ok(rooms.includes(named), named);
    }
    assert.ok(read('CHANGELOG.md').includes(`\n## ${JSON.parse(read('package.json')).version} `));
  });
});

/** Command lines as documents have them: in code spans, in quotes, and as lines of their own. */
function commandLines(text: string): string[] {
  const joined = text.replace(/([^\n])\n +(?=\S)/g, '$1 ');
  return [
    ...[...text.matchAll(/`(wirewatch [^`]+)`/g)].map(([, line = '']) => line),
    ...[...joined.replace(/([^\n])\n(?=\S)/g, '$1 ').matchAll(/"(wirewatch [^"]+)"/g)].map(
      ([, line = '']) => line,
    ),
    ...[...text.matchAll(/^(wirewatch (?![A-Z]).*)$/gm)].map(([, line = '']) => line),
  ];
}

/** @returns what is wrong with a command line; null when nothing is */
function judgeCommandLine(line: string): string | null {
  const [typed = ''] = line.split(/ [|>]/);
  const words = (typed.match(/"[^"]*"|\S+/g) ?? []).slice(1);
  let command = program;
  let places = 0;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const below = command.commands.find((one) => one.name() === word);
    if (below !== undefined) command = below;
    else if (word.startsWith('--')) {
      const option = [...command.options, ...program.options].find(({ long }) => long === word);
      if (option === undefined && word !== '--help') return `no option ${word}`;
      if (option?.required === true) at += 1;
    } else if (word === 'COMMAND') return null;
    else if (command.commands.length > 0) return `no command ${word}`;
    else places += 1;
  }
  return places > command.registeredArguments.length ? 'no argument for that' : null;
}

test('no text calls data complete up to a time: windows before it may have failed or be missing', () => {
  for (const name of ['README.md', ...sourceFiles('src')])
    assert.doesNotMatch(read(name).replace(/\s+/g, ' '), /complete up to|(data|export) is complete/i, name);
});

describe('the manual', () => {
  test('lists every log line of level warn or error, and no other', () => {
    const inThreads = sourceText.matchAll(/\blog\(\s*'(?:warn|error)',\s*'([^']+)'/g);
    const inMain = sourceText.matchAll(/\blog\.(?:warn|error|fatal)\(\s*\{[^{}]*\},\s*'([^']+)'/g);
    const logged = [...inThreads, ...inMain].map(([, msg = '']) => msg);
    assert.match(sourceText, /`file \$\{outcome\}`/);
    assert.deepEqual(
      tableRows(topic('log-lines'))
        .map(([msg = '']) => msg)
        .sort(),
      ['file failed', 'file refused', ...new Set(logged)].sort(),
    );
  });

  test('lists every error code with its status, and says to a client what else can come', () => {
    const codes = tableRows(topic('change-stream')).map(([status, code]) => `${status} ${code}`);
    for (const [code, { status }] of Object.entries(PROBLEMS))
      assert.ok(codes.includes(`${status} \`${code}\``), code);
    const guide = words('client-guide');
    for (const said of [
      /last path segment of its type/,
      /500, 502, 503, 504, or no answer \|/,
      /502 and 504 come from a proxy.*not a problem document/,
      /body that ends early \| Store nothing of it, and repeat/,
      /as_of is null.*or older than 31 days.*Date header/,
      /One was removed\..*continue with the same cursor/,
      /one subscription_id with one content_type.*up to 1,000 rows.*several streams gets at most 200/,
      /web page cannot call the API unless.*server\.cors_origins.*OPTIONS is answered with 405/,
    ])
      assert.match(guide, said);
    assert.match(words('change-stream'), /49\.5 passes min_score=50, and its band is low/);
  });

  test('is printed as text and as JSON; an unknown topic is wrong usage', () => {
    const list = wirewatch(root, 'manual', '--json');
    assert.deepEqual(
      JSON.parse(list.stdout).map(({ topic }: { topic: string }) => topic),
      [...manual.keys()],
    );
    const contents = wirewatch(root, 'manual').stdout;
    for (const name of manual.keys()) assert.match(contents, new RegExp(`^  ${name} `, 'm'));
    const layout = { columns: 100, styled: false };
    assert.equal(
      wirewatch(root, 'manual', 'settings').stdout,
      terminalText(manual.get('settings') ?? '', layout),
    );
    const json = JSON.parse(wirewatch(root, 'manual', 'security', '--json').stdout);
    assert.deepEqual(json, { topic: 'security', markdown: manual.get('security') });
    const unknown = wirewatch(root, 'manual', 'cooking');
    assert.equal(unknown.status, 2);
    assert.match(unknown.stderr, /no topic "cooking"\. To list the topics, run: wirewatch manual/);
  });
});

function cleanEnv(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('WIREWATCH_'));
  return { ...Object.fromEntries(own), ...env };
}

function wirewatch(cwd: string, ...args: string[]) {
  const main = path.join(root, 'dist', 'main.cjs');
  return spawnSync(process.execPath, [main, ...args], { cwd, encoding: 'utf8', env: cleanEnv() });
}

function has(tool: string): boolean {
  return spawnSync(tool, ['--version']).status === 0;
}

function temporaryFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'wirewatch-documents-'));
}

describe("the manual's writers", () => {
  const folder = temporaryFolder();
  const drop = path.join(folder, 'wirewatch-data', 'drop');
  before(() => mkdirSync(drop, { recursive: true }));
  after(() => rmSync(folder, { recursive: true }));

  /** Runs an example of the manual; @returns the one file that it dropped, by its name */
  function dropped(run: () => ReturnType<typeof spawnSync>): string {
    const there = readdirSync(drop);
    const { status, stderr } = run();
    assert.equal(status, 0, String(stderr));
    const added = readdirSync(drop).filter((name) => !there.includes(name));
    assert.equal(added.length, 1, added.join());
    return path.join(drop, added[0] ?? '');
  }

  function assertValid(file: string): void {
    const { stdout, stderr } = wirewatch(folder, 'ingest', 'validate', file, '--json');
    assert.equal(stderr, '');
    const { valid, rows, errors, ignored_columns } = JSON.parse(stdout);
    assert.deepEqual(
      { valid, rows, errors, ignored_columns },
      { valid: true, rows: 1, errors: [], ignored_columns: [] },
    );
  }

  for (const [name, code] of [
    ['shell', example('export-format', 'shell-writer')],
    ['CSV', example('export-format', 'csv-writer')],
  ] as const) {
    test(`the ${name} example writes what is valid`, {
      skip: !has('gzip') && 'gzip is not installed',
    }, () => {
      assertValid(dropped(() => spawnSync('sh', ['-eu', '-c', code], { cwd: folder, encoding: 'utf8' })));
    });
  }

  test('the Python example writes what is valid', {
    skip: !has('python3') && 'python3 is not installed',
  }, () => {
    assertValid(
      dropped(() =>
        spawnSync('python3', ['-c', example('export-format', 'python-writer')], {
          cwd: folder,
          encoding: 'utf8',
        }),
      ),
    );
  });
});

describe("README's way to a real appliance", { skip: !has('curl') && 'curl is not installed' }, () => {
  const folder = temporaryFolder();
  const bin = path.join(folder, 'bin');
  const env = cleanEnv({ PATH: `${bin}${path.delimiter}${process.env.PATH}`, WIREWATCH_SERVER_PORT: '0' });
  const since = new Date(Date.now() - 1000).toISOString();
  /** Where a person takes a moment to read on, a script waits until nothing is left to be read. */
  const UNTIL_READ =
    'while [ -n "$(find wirewatch-data/drop -maxdepth 1 -name \'*.ndjson*\')$(ls -A wirewatch-data/drop/.taken)" ]; do sleep 0.1; done\n';
  let appliance: ChildProcess | null = null;
  let url = '';

  before(() => {
    mkdirSync(bin);
    const command = path.join(bin, 'wirewatch');
    writeFileSync(
      command,
      `#!/bin/sh\nexec '${process.execPath}' '${path.join(root, 'dist', 'main.cjs')}' "$@"\n`,
    );
    chmodSync(command, 0o755);
  });
  after(async () => {
    if (appliance !== null && appliance.exitCode === null && appliance.pid !== undefined) {
      const ended = once(appliance, 'exit');
      process.kill(-appliance.pid, 'SIGTERM');
      await ended;
    }
    rmSync(folder, { recursive: true });
  });

  function sh(code: string) {
    const script = code.replaceAll('http://127.0.0.1:8080', url === '' ? 'http://unknown.invalid' : url);
    return spawnSync('sh', ['-eu', '-c', script], { cwd: folder, encoding: 'utf8', env, timeout: 60_000 });
  }

  /** Starts it in a process group of its own, as the shell of a terminal does, and waits until it listens. */
  async function start(code: string): Promise<string> {
    const child = spawn('sh', ['-c', code], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    appliance = child;
    const seen: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      seen.push(line);
      // A refusal is plain text.
      if (!line.startsWith('{')) continue;
      const { msg, url } = JSON.parse(line);
      if (msg !== 'listening') continue;
      child.stderr.resume();
      return url;
    }
    return assert.fail(`it ended before it listened: ${seen.join('\n')}`);
  }

  test('runs as it is written', async () => {
    const blocks = [...readme.matchAll(/<!-- (run|run in the background) -->\n```sh\n([\s\S]*?)```/g)];
    const background = blocks.findIndex(([, how]) => how === 'run in the background');
    assert.ok(background > 0 && blocks.length > background + 2);
    const codes = blocks.map(([, , code = '']) => code);
    const prepared = sh(codes.slice(0, background).join(''));
    assert.equal(prepared.status, 0, prepared.stderr);
    url = await start(codes[background] ?? '');

    const [drop = '', calls = ''] = codes.slice(background + 1);
    const dropped = sh(drop);
    assert.equal(dropped.status, 0, dropped.stderr);
    const { status, stdout, stderr } = sh(`${UNTIL_READ}${calls}`);
    assert.equal(status, 0, stderr);
    const [me, first, next, ...others] = stdout.replaceAll('}{', '}\n{').trim().split('\n');
    assert.deepEqual(others, []);
    assert.deepEqual(
      JSON.parse(me ?? '').subscriptions.map(({ id }: { id: number }) => id),
      [7001],
    );
    assert.deepEqual(
      JSON.parse(first ?? '').data.map(({ id }: { id: string }) => id),
      ['t.7001.9001.501'],
    );
    assert.deepEqual(JSON.parse(next ?? '').data, []);
  });

  test('the quick start goes on from there', () => {
    const [dropCode, readCode] = ['drop', 'read'].map((name) => example('quick-start', name));
    const { key } = JSON.parse(readFileSync(path.join(folder, 'key.json'), 'utf8'));
    const { status, stdout, stderr } = sh(
      (dropCode ?? '').replace('wirewatch ingest', `${UNTIL_READ}wirewatch ingest`) +
        (readCode ?? '').replace('ww_live_…', key),
    );
    assert.equal(status, 0, stderr);
    assert.equal(stdout.match(/ applied +20 /g)?.length, 2, stdout);
    const page = JSON.parse(stdout.slice(stdout.indexOf('{"data":')));
    assert.equal(page.data.length, 3);
    assert.match(page.next_cursor, /^[\w-]+$/);
    const [, more = ''] = topic('quick-start').match(/(curl [^\n]*cursor=NEXT_CURSOR")/) ?? [];
    const next = sh(`KEY=${key}\n${more.replace('NEXT_CURSOR', page.next_cursor)}`);
    assert.ok(JSON.parse(next.stdout).data.length >= 37);
  });

  test('the files that are there then are those that the manual lists', () => {
    const text = manual.get('files') ?? '';
    const own = /(-wal|-shm|-journal)$/;
    const found = readdirSync(path.join(folder, 'wirewatch-data')).filter(
      (name) => !own.test(name) && name !== 'drop',
    );
    assert.deepEqual(found.sort(), [
      'access-log',
      'access.db',
      'address',
      'alerts.json',
      'detections.db',
      'detections.db-identity',
      'lock',
      'lock-serve',
      'lock-state',
      'log',
      'reserve',
      'secret',
      'usage.db',
    ]);
    for (const name of found) assert.match(text, new RegExp(`^\\| [^|]*\`${name}/?\`[^|]* \\|`, 'm'), name);
    for (const name of OWN_FOLDERS) assert.ok(text.includes(`\`${name}/`), name);
  });

  test("the manual's client reads it whole, and goes on where it was", {
    skip: !has('python3') && 'python3 is not installed',
  }, async () => {
    const { key } = JSON.parse(readFileSync(path.join(folder, 'key.json'), 'utf8'));
    const answer = await fetch(`${url}/v1/detections/changes?since=${since}&limit=1000`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data }: { data: { id: string }[] } = JSON.parse(await answer.text());
    const expected = `${new Set(data.map(({ id }) => id)).size} detections\n`;
    assert.ok(data.length >= 30);
    const client = (env: Record<string, string>) =>
      spawnSync('python3', ['-c', example('change-stream', 'python-client')], {
        cwd: folder,
        encoding: 'utf8',
        env: cleanEnv({ BASE_URL: url, KEY: key, ...env }),
        timeout: 60_000,
      });
    const first = client({ SINCE: since });
    assert.deepEqual([first.stdout, first.stderr], [expected, '']);
    // With a cursor, since is not used any more: one that would be refused shows that.
    const second = client({ SINCE: 'never' });
    assert.deepEqual([second.stdout, second.stderr], [expected, '']);
  });
});
