/** The structure of the sources: who imports whom, one place for each dependency, sizes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { importsOf, roomOf, root, type SourceFile, sources } from './support/project-files.ts';

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
  console: ['admin', 'detection'],
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

const LINES_MAX = 400;

function targetOf(file: SourceFile, specifier: string): string {
  return path.posix.join(path.posix.dirname(file.name), specifier);
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
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
