/** The structure of the sources: allowed imports between folders, the importers of each dependency, file sizes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { DOORS, ROOMS } from './support/import-table.ts';
import { tableRows, topic } from './support/manual.ts';
import { importsOf, roomOf, root, type SourceFile, sources } from './support/project-files.ts';
import { testsByName } from './support/test-files.ts';
import { words } from './support/words.ts';
import { PLANTED_FAULTS } from './torture/planted.ts';

const LINES_MAX = 350;
const TEST_LINES_MAX = 400;

function targetOf(file: SourceFile, specifier: string): string {
  return path.posix.join(path.posix.dirname(file.name), specifier);
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

test('the parser of imports finds every form', () => {
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

test('folders import exactly the folders that the table allows', () => {
  const used = new Map<string, Set<string>>();
  const refused: string[] = [];
  for (const file of sources) {
    const room = roomOf(file.name);
    const allowed = ROOMS[room];
    assert.ok(allowed, `src/${file.name}: the folder ${room} is not in the table`);
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
    assert.deepEqual(idle, [], `${room} no longer imports these: remove them from the table`);
  }
});

test('no file imports itself through others, not even for a type', () => {
  const imports = new Map(
    sources.map((file) => [
      file.name,
      file.imports.filter((one) => one.startsWith('.')).map((one) => targetOf(file, one)),
    ]),
  );
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (name: string, above: readonly string[]) => {
    const at = above.indexOf(name);
    if (at >= 0) cycles.push([...above.slice(at), name].join(' > '));
    if (at >= 0 || done.has(name)) return;
    for (const target of imports.get(name) ?? []) visit(target, [...above, name]);
    done.add(name);
  };
  for (const name of imports.keys()) visit(name, []);
  assert.deepEqual(cycles, []);
});

test('nothing below http and cli imports them', () => {
  const above = new Set(
    words(`
    http openapi admin console check cli tools/lab appliance-ingest.ts appliance.ts main.ts worker.ts`),
  );
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

test('each dependency is used, and imported only by its one file', () => {
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

test('no source file is longer than 350 lines; each begins with its purpose', () => {
  for (const { name, text } of sources) {
    const lines = text.split('\n').length - 1;
    assert.ok(lines <= LINES_MAX, `src/${name} has ${lines} lines: split it`);
    assert.ok(text.startsWith('/**'), `src/${name} does not start with a comment that states its purpose`);
  }
});

test('no test file is longer than 400 lines', () => {
  for (const file of testsByName(path.join(root, 'test')).values()) {
    const lines = readFileSync(file, 'utf8').split('\n').length - 1;
    assert.ok(lines <= TEST_LINES_MAX, `${file} has ${lines} lines: split it`);
  }
});

test('each fault in the list of planted faults is one place of the source, and names a test file', () => {
  const tests = testsByName(path.join(root, 'test'));
  const textOf = new Map(sources.map(({ name, text }) => [name, text]));
  const wrong = PLANTED_FAULTS.filter(
    ({ file, find, replace, test: name }) =>
      textOf.get(file)?.split(find).length !== 2 || replace === find || !tests.has(name),
  );
  assert.deepEqual(wrong, []);
});

test('each invariant that a test of a room shows has a planted fault', () => {
  const [, promises = ''] = topic('invariants').split(/^## /m);
  const planted = new Set(PLANTED_FAULTS.map(({ test: name }) => name));
  const bare = tableRows(promises).filter(([, , shown = '']) => {
    const tests = [...shown.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name);
    return !tests.some((name) => planted.has(name) || name.startsWith('executable'));
  });
  assert.deepEqual(
    bare.map(([promise]) => promise),
    [],
  );
});
