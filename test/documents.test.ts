/** The documents match the program: settings, commands, endpoints, files and log lines. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { createProgram } from '../src/cli/program.ts';
import { loadConfig } from '../src/config/load.ts';
import { SETTINGS } from '../src/config/schema.ts';
import { markdownOf, TOPICS } from '../src/manual/topics.ts';
import { openApiDocument } from '../src/openapi/document.ts';
import { PROBLEMS } from '../src/problem-titles.ts';
import { succeed } from './support/command.ts';
import { tableRows, topic, words } from './support/manual.ts';
import { root, sources } from './support/project-files.ts';
import { testFolder } from './support/test-folder.ts';

const wirewatch = (...args: string[]) => succeed(args).stdout;

const read = (name: string) => readFileSync(path.join(root, name), 'utf8');
const readme = read('README.md');
const program = await createProgram();
const manual = new Map(TOPICS.map((topic) => [topic.name, markdownOf(topic)]));
const sourceText = sources.map(({ text }) => text).join('\n');

describe('README', () => {
  test('fits into 150 lines', () => {
    assert.ok(readme.split('\n').length <= 151);
  });

  test('it has no dead links, nor have the other documents', () => {
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

  test('every command line in them is valid', () => {
    let found = 0;
    for (const [name, text] of documents) {
      for (const line of commandLines(text)) {
        found += 1;
        const wrong = commandLineError(line);
        assert.equal(wrong, null, `${name}: ${line}`);
      }
    }
    assert.ok(found > 80, `only ${found} command lines were found`);
    assert.match(commandLineError('wirewatch undo all.db') ?? '', /no command/);
    assert.match(commandLineError('wirewatch serve --colour red') ?? '', /no option/);
    assert.match(commandLineError('wirewatch ingest status now') ?? '', /no argument/);
  });

  test('every setting named in them exists, or is a member of a response', () => {
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

  test('every configuration in them is valid', () => {
    const folder = testFolder();
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
    assert.ok(found > 3, `only ${found} were found`);
  });

  test('every environment variable in them exists', () => {
    const settings = new Set(SETTINGS.map(({ variable }) => variable));
    for (const [name, text] of documents) {
      for (const [variable] of text.matchAll(/WIREWATCH_[A-Z_]+/g)) {
        const isRead =
          settings.has(variable) || new RegExp(`env(ironment)?\\.${variable}\\b`).test(sourceText);
        assert.ok(isRead, `${name}: ${variable}`);
      }
    }
  });

  test('every source file that they name exists', () => {
    const files = sources.map(({ name }) => `/src/${name}`);
    const texts = `${read('ARCHITECTURE.md')}${manual.get('invariants')}`;
    const named = [...texts.matchAll(/`(?!test\/)([a-z/-]+\.ts)`/g)].map(([, name]) => `/${name}`);
    assert.ok(named.length > 50);
    const missing = named.filter((name) => !files.some((file) => file.endsWith(name)));
    assert.deepEqual(missing, []);
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

/** The command lines of a document: in code spans, in quotes, and on separate lines. */
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

/** @returns the error in a command line; null: none */
function commandLineError(line: string): string | null {
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
  for (const { name, text } of [{ name: 'README.md', text: readme }, ...sources])
    assert.doesNotMatch(text.replace(/\s+/g, ' '), /complete up to|(data|export) is complete/i, name);
});

describe('the manual', () => {
  test('lists exactly the log lines of level warn and error', () => {
    const inThreads = sourceText.matchAll(/\blog\(\s*'(?:warn|error)',\s*'([^']+)'/g);
    const inMain = sourceText.matchAll(/\blog\.(?:warn|error|fatal)\(\s*\{[^{}]*\},\s*'([^']+)'/g);
    const logged = [...inThreads, ...inMain].map(([, msg = '']) => msg);
    assert.match(sourceText, /`file \$\{outcome\}`/);
    const listed = tableRows(topic('log-lines')).map(([msg = '']) => msg);
    assert.deepEqual(listed.sort(), ['file failed', 'file refused', ...new Set(logged)].sort());
  });

  test('lists every error code with its status, and other replies a client can get', () => {
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

  test('has at most 40,000 words: all that has a letter or a digit, in every topic, programs included', () => {
    const pages = [read('src/manual/README.md'), ...manual.values()];
    const counts = pages.map((page) => page.replaceAll(/<!--[\s\S]*?-->/g, '').match(/\S*[\p{L}\p{N}]\S*/gu));
    assert.ok(counts.flat().length <= 40_000, `${counts.flat().length}`);
  });

  test('is printed as text and as JSON', () => {
    const topics = JSON.parse(wirewatch('manual', '--json')).map(({ topic }: { topic: string }) => topic);
    assert.deepEqual(topics, [...manual.keys()]);
    const contents = wirewatch('manual');
    for (const name of manual.keys()) assert.match(contents, new RegExp(`^  ${name} `, 'm'));
    assert.equal(wirewatch('manual', 'settings'), manual.get('settings'));
    const json = JSON.parse(wirewatch('manual', 'security', '--json'));
    assert.deepEqual(json, { topic: 'security', markdown: manual.get('security') });
  });
});
