/** The structure of the sources: who imports whom, one door a dependency, sizes, names, and what must stand nowhere. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const root = path.join(import.meta.dirname, '..');

/**
 * Rooms and what each may import besides itself; a file directly in src/ is a room of its own. A line here is a
 * decision: what is not listed is refused, and what is listed must be in use.
 */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  'addresses.ts': [],
  'time.ts': [],
  'bounded-map.ts': [],
  'seal.ts': [],
  'time-zone.ts': ['bounded-map.ts'],
  'zone-days.ts': ['time.ts'],
  'error-codes.ts': [],
  'refused.ts': ['error-codes.ts'],
  'printable.ts': [],
  'clock.ts': ['time.ts'],
  'counted.ts': [],
  'log-output.ts': ['pace.ts', 'printable.ts'],
  'log.ts': ['log-output.ts', 'printable.ts', 'refused.ts'],
  'nearest.ts': [],
  'packed.ts': [],
  'pace.ts': [],
  'text-files.d.ts': [],
  'thread-call.ts': ['refused.ts'],
  'version.ts': [],
  detection: ['bounded-map.ts', 'seal.ts'],
  limits: [
    'addresses.ts',
    'bounded-map.ts',
    'counted.ts',
    'packed.ts',
    'refused.ts',
    'store',
    'thread-call.ts',
    'time.ts',
  ],
  config: [
    'addresses.ts',
    'auth',
    'counted.ts',
    'detection',
    'nearest.ts',
    'refused.ts',
    'time-zone.ts',
    'time.ts',
  ],
  store: ['clock.ts', 'counted.ts', 'packed.ts', 'refused.ts', 'time.ts'],
  auth: [
    'addresses.ts',
    'bounded-map.ts',
    'detection',
    'limits',
    'refused.ts',
    'seal.ts',
    'store',
    'time.ts',
  ],
  windows: ['counted.ts', 'detection', 'store', 'time.ts'],
  history: [
    'clock.ts',
    'counted.ts',
    'detection',
    'pace.ts',
    'packed.ts',
    'refused.ts',
    'store',
    'thread-call.ts',
    'time.ts',
    'version.ts',
  ],
  ingest: [
    'bounded-map.ts',
    'clock.ts',
    'counted.ts',
    'detection',
    'history',
    'nearest.ts',
    'pace.ts',
    'packed.ts',
    'refused.ts',
    'store',
    'thread-call.ts',
    'time.ts',
    'windows',
  ],
  query: [
    'bounded-map.ts',
    'counted.ts',
    'detection',
    'history',
    'limits',
    'printable.ts',
    'refused.ts',
    'seal.ts',
    'store',
    'time-zone.ts',
    'time.ts',
    'zone-days.ts',
  ],
  backup: [
    'auth',
    'counted.ts',
    'history',
    'ingest',
    'packed.ts',
    'refused.ts',
    'store',
    'time.ts',
    'version.ts',
  ],
  health: [
    'counted.ts',
    'detection',
    'ingest',
    'log.ts',
    'pace.ts',
    'query',
    'refused.ts',
    'store',
    'time.ts',
    'windows',
  ],
  check: [
    'auth',
    'backup',
    'config',
    'counted.ts',
    'health',
    'history',
    'http',
    'ingest',
    'pace.ts',
    'refused.ts',
    'store',
    'time.ts',
    'windows',
  ],
  generate: ['bounded-map.ts', 'detection', 'ingest', 'refused.ts', 'time.ts'],
  manual: [],
  pull: ['counted.ts', 'detection', 'refused.ts', 'store', 'time.ts'],
  samples: ['config'],
  setup: ['config', 'refused.ts'],
  demo: ['auth', 'detection', 'generate', 'store', 'time.ts'],
  lab: [
    'addresses.ts',
    'admin',
    'appliance.ts',
    'auth',
    'clock.ts',
    'config',
    'demo',
    'detection',
    'error-codes.ts',
    'generate',
    'history',
    'http',
    'ingest',
    'limits',
    'nearest.ts',
    'openapi',
    'query',
    'refused.ts',
    'store',
    'time.ts',
    'windows',
  ],
  openapi: ['auth', 'detection', 'error-codes.ts', 'limits', 'query', 'time.ts'],
  http: [
    'addresses.ts',
    'auth',
    'clock.ts',
    'config',
    'counted.ts',
    'detection',
    'error-codes.ts',
    'health',
    'limits',
    'log.ts',
    'pace.ts',
    'printable.ts',
    'query',
    'refused.ts',
    'seal.ts',
    'store',
    'time.ts',
  ],
  admin: [
    'auth',
    'backup',
    'bounded-map.ts',
    'clock.ts',
    'config',
    'counted.ts',
    'detection',
    'health',
    'history',
    // It speaks TLS, and reads bodies, as the API does.
    'http',
    'ingest',
    'limits',
    'log.ts',
    'manual',
    'openapi',
    'pace.ts',
    'packed.ts',
    'query',
    'refused.ts',
    'seal.ts',
    'store',
    'thread-call.ts',
    'time.ts',
    'version.ts',
    'windows',
  ],
  console: ['admin'],
  'appliance.ts': [
    'admin',
    'appliance-ingest.ts',
    'auth',
    'backup',
    'bounded-map.ts',
    'clock.ts',
    'config',
    'health',
    'history',
    'http',
    'ingest',
    'limits',
    'log.ts',
    'prepare-access.ts',
    'seal.ts',
    'store',
    'time.ts',
  ],
  'appliance-ingest.ts': [
    'admin',
    'auth',
    'bounded-map.ts',
    'config',
    'health',
    'http',
    'ingest',
    'log.ts',
    'pace.ts',
    'seal.ts',
    'store',
    'time.ts',
    'version.ts',
  ],
  // Status and the console's overview are one query.
  cli: [
    'admin',
    'appliance-ingest.ts',
    'appliance.ts',
    'auth',
    'backup',
    'check',
    'clock.ts',
    'config',
    'counted.ts',
    'demo',
    'detection',
    'generate',
    'health',
    'history',
    'ingest',
    'lab',
    'limits',
    'log.ts',
    'manual',
    'nearest.ts',
    'openapi',
    'pace.ts',
    'packed.ts',
    'printable.ts',
    'pull',
    'refused.ts',
    'samples',
    'setup',
    'seal.ts',
    'store',
    'time.ts',
    'version.ts',
    'windows',
  ],
  'prepare-access.ts': ['auth', 'clock.ts', 'config', 'history', 'log.ts', 'store'],
  'launch.ts': ['setup'],
  'debug-variables.ts': ['packed.ts'],
  'main.ts': ['cli', 'debug-variables.ts'],
  'worker.ts': ['admin', 'history', 'ingest', 'limits'],
};

/** The files, or folders with a slash at their end, through which each dependency is used. */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  '@sinclair/typebox': ['config/', 'lab/', 'openapi/', 'pull/', 'query/'],
  'better-sqlite3': ['store/addon.ts', 'store/database.ts'],
  chokidar: ['ingest/drop/drop-folder.ts'],
  commander: ['cli/'],
  'csv-parse': ['ingest/format/csv.ts', 'pull/csv.ts'],
  htm: ['console/'],
  marked: ['manual/html.ts', 'manual/terminal.ts'],
  pino: ['log.ts'],
  'pino-pretty': ['log.ts'],
  polka: ['http/server.ts'],
  preact: ['console/'],
  'prom-client': ['admin/metrics.ts'],
  'smol-toml': ['config/file.ts'],
  tar: ['backup/tar-file.ts'],
  'temporal-polyfill': ['zone-days.ts'],
  tldts: ['ingest/rules/article-address.ts'],
};

const TOP_LEVEL = [
  '.ci',
  '.gitignore',
  '.npmrc',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'biome.json',
  'build',
  'config',
  'package-lock.json',
  'package.json',
  'src',
  'test',
  'tsconfig.json',
];

/** What is no room: the whole program, its build, the contract's rules one by one, and what takes minutes. */
const TEST_FOLDERS = ['appliance', 'build', 'contract', 'long'];

const LINES_MAX = 400;

interface SourceFile {
  /** Relative to src/, with slashes. */
  readonly name: string;
  readonly text: string;
  /** As written. */
  readonly imports: readonly string[];
  /** Those of them that are there at run time. */
  readonly loaded: readonly string[];
}

/** Statements that Node takes out before it runs a file. */
const TYPE_IMPORT = /^(import|export) type\b[^;]*;/gm;

const sources: readonly SourceFile[] = readdirSync(path.join(root, 'src'), {
  recursive: true,
  encoding: 'utf8',
})
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.ts'))
  .sort()
  .map((name) => {
    const text = readFileSync(path.join(root, 'src', name), 'utf8');
    return { name, text, imports: importsOf(text), loaded: importsOf(text.replaceAll(TYPE_IMPORT, '')) };
  });

/** What a file names behind `from`, `import` and `import(`, types included: they tie rooms together as well. */
function importsOf(text: string): string[] {
  const statements = text.matchAll(
    /^\s*(?:import|export)\b[^;]*?\bfrom\s+'([^']+)'|^\s*import\s+'([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  return [...statements].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? '');
}

function targetOf(file: SourceFile, specifier: string): string {
  return path.posix.join(path.posix.dirname(file.name), specifier);
}

function roomOf(name: string): string {
  return name.split('/')[0] ?? name;
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** What belongs to the project: what git has and would add; without git, all but what is made. */
function projectFiles(): string[] {
  if (existsSync(path.join(root, '.git'))) {
    const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
    const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0');
    return [...new Set(listed)].filter((name) => name !== '' && existsSync(path.join(root, name))).sort();
  }
  const made = /^(node_modules|dist|wirewatch-data|wirewatch-demo|wirewatch-lab|\.git)(\/|$)/;
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((name) => !made.test(name))
    .sort();
}

test('the reader of imports sees every form of them', () => {
  const text = [
    "import a from 'a';",
    "import {\n  b,\n  c,\n} from './b.ts';",
    "export { d } from '../d.ts';",
    "import type { E } from 'e';",
    "import 'f';",
    "const g = await import('g');",
    "import h from './h.json' with { type: 'json' };",
  ].join('\n');
  assert.deepEqual(importsOf(text), ['a', './b.ts', '../d.ts', 'e', 'f', 'g', './h.json']);
  assert.ok(sources.length > 100, 'the sources were not found');
});

test('rooms import only the rooms that the table allows them, and all of those', () => {
  const used = new Map<string, Set<string>>();
  const refused: string[] = [];
  for (const file of sources) {
    const room = roomOf(file.name);
    const allowed = ROOMS[room];
    assert.ok(allowed, `src/${file.name}: the room ${room} is not in the table`);
    for (const specifier of file.imports.filter((one) => one.startsWith('.') && one.endsWith('.ts'))) {
      const other = roomOf(targetOf(file, specifier));
      if (other === room) continue;
      used.set(room, (used.get(room) ?? new Set()).add(other));
      if (!allowed.includes(other)) refused.push(`src/${file.name} imports ${specifier}`);
    }
  }
  assert.deepEqual(refused, []);
  for (const [room, allowed] of Object.entries(ROOMS)) {
    const idle = allowed.filter((other) => used.get(room)?.has(other) !== true);
    assert.deepEqual(idle, [], `${room} no longer imports these: take them out of the table`);
  }
});

test('nothing below http and cli knows them', () => {
  const above = new Set([
    'http',
    'admin',
    'console',
    'check',
    'cli',
    'lab',
    'appliance-ingest.ts',
    'appliance.ts',
    'main.ts',
    'worker.ts',
  ]);
  for (const [room, allowed] of Object.entries(ROOMS)) {
    if (above.has(room)) continue;
    assert.deepEqual(
      allowed.filter((other) => above.has(other)),
      [],
      room,
    );
  }
  assert.ok(!ROOMS.http?.includes('cli') && !ROOMS['appliance.ts']?.includes('cli'));
});

test('each dependency has its one door, is used, and no other is', () => {
  const packageFile: { dependencies: Record<string, string> } = JSON.parse(
    readFileSync(path.join(root, 'package.json'), 'utf8'),
  );
  const used = new Set<string>();
  for (const file of sources) {
    for (const specifier of file.imports) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      const name = packageOf(specifier);
      used.add(name);
      const doors = DOORS[name] ?? [];
      const isDoor = doors.some((door) =>
        door.endsWith('/') ? file.name.startsWith(door) : file.name === door,
      );
      assert.ok(isDoor, `src/${file.name} imports ${specifier}`);
    }
  }
  assert.deepEqual([...used].sort(), Object.keys(DOORS).sort());
  assert.deepEqual(Object.keys(packageFile.dependencies).sort(), Object.keys(DOORS).sort());
});

test('no file loads itself by way of others', () => {
  const byName = new Map(sources.map((file) => [file.name, file]));
  const finished = new Set<string>();
  const cycles: string[] = [];
  const visit = (name: string, way: readonly string[]) => {
    const at = way.indexOf(name);
    if (at >= 0) {
      cycles.push([...way.slice(at), name].join(' → '));
      return;
    }
    const file = byName.get(name);
    if (file === undefined || finished.has(name)) return;
    for (const specifier of file.loaded.filter((one) => one.startsWith('.'))) {
      visit(targetOf(file, specifier), [...way, name]);
    }
    finished.add(name);
  };
  for (const { name } of sources) visit(name, []);
  assert.deepEqual(cycles, []);
});

test('no source file is longer than 400 lines; each opens with its job', () => {
  for (const { name, text } of sources) {
    const lines = text.split('\n').length - 1;
    assert.ok(lines <= LINES_MAX, `src/${name} has ${lines} lines: look for the seam`);
    assert.ok(text.startsWith('/**'), `src/${name} does not open with a comment that says what it is for`);
  }
});

test('a test lies in the folder of its room, and is found by its name alone', () => {
  const rooms = new Set([...sources.map(({ name }) => roomOf(name)), ...TEST_FOLDERS]);
  const names = new Map<string, string>();
  for (const name of projectFiles().filter((file) => file.endsWith('.test.ts'))) {
    const [, folder = '', ...rest] = name.split('/');
    assert.ok(rest.length === 0 || rooms.has(folder), `${name}: src/${folder} does not exist`);
    const short = path.posix.basename(name);
    assert.ok(!names.has(short), `${name} and ${names.get(short)} have one name`);
    names.set(short, name);
  }
  assert.ok(names.size > 100);
});

test('files and folders have kebab-case names', () => {
  const named = projectFiles().filter((name) => /^(src|test|build|config)\//.test(name));
  assert.ok(named.length > sources.length);
  for (const name of named) {
    for (const part of name.replace(/README\.md$/, 'readme.md').split('/'))
      assert.match(part, /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/, name);
  }
});

test('at the top level is only what people expect there', () => {
  const found = new Set(projectFiles().map((name) => name.split('/')[0] ?? ''));
  assert.deepEqual(
    [...found].filter((name) => !TOP_LEVEL.includes(name)),
    [],
  );
  assert.deepEqual(
    TOP_LEVEL.filter((name) => !found.has(name)),
    [],
  );
});

test('the packages have exact versions, and the lockfile names no registry', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(path.join(root, 'package.json'), 'utf8'),
  );
  const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
  assert.ok(versions.length > 10);
  for (const [name, version] of versions) assert.match(String(version), /^\d+\.\d+\.\d+$/, name);
  assert.doesNotMatch(readFileSync(path.join(root, 'package-lock.json'), 'utf8'), /"resolved": *"/);
  assert.doesNotMatch(readFileSync(path.join(root, '.npmrc'), 'utf8'), /registry *=/);
});

test('nothing names the machine it was made on, a registry, or how the work was divided', () => {
  // Put together here, since this file is looked through as well.
  const forbidden = [
    ['\\.\\./sha', 'red\\b'],
    ['(?<![\\w.-])/(root|home|Users)/', '[a-z]'],
    ['(?<![\\w.-])/work/', '(main|shared)'],
    ['registry\\.', '(npmjs|yarnpkg|npmmirror)'],
    ['(art', 'ifactory|verd', 'accio)'],
    ['\\bdecisions? ', '\\d'],
  ].map((parts) => new RegExp(parts.join(''), 'i'));
  for (const name of projectFiles()) {
    const text = readFileSync(path.join(root, name), 'utf8');
    for (const pattern of forbidden) {
      const found = pattern.exec(text);
      assert.equal(
        found,
        null,
        `${name}: ${text.slice(Math.max(0, (found?.index ?? 0) - 40), (found?.index ?? 0) + 60)}`,
      );
    }
  }
});
