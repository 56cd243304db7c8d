/** The structure of the sources: allowed imports between folders, the importers of each dependency, file sizes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { DOORS, HELPERS, ROOMS } from './support/import-table.ts';
import { tableRows, topic } from './support/manual.ts';
import { importsOf, roomOf, root, type SourceFile, sources } from './support/project-files.ts';
import { testsByName } from './support/test-files.ts';
import { PLANTED_FAULTS } from './torture/planted/faults.ts';

const LINES_MAX = 350;
const TEST_LINES_MAX = 400;

const targetOf = (file: SourceFile, specifier: string): string =>
  path.posix.join(path.posix.dirname(file.name), specifier);

function packageOf(specifier: string): string {
  const names = specifier.split('/');
  return names.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
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
    const allowed = ROOMS[room] ?? [];
    for (const specifier of file.imports.filter((one) => one.startsWith('.') && one.endsWith('.ts'))) {
      const other = roomOf(targetOf(file, specifier));
      if (other === room || HELPERS.includes(other)) continue;
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
  const ownImports = (file: SourceFile) => file.imports.filter((one) => one.startsWith('.'));
  const targetsOf = (file: SourceFile) => ownImports(file).map((one) => targetOf(file, one));
  const imports = new Map(sources.map((file) => [file.name, targetsOf(file)]));
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
      const isDoor = (door: string) => (door.endsWith('/') ? file.name.startsWith(door) : file.name === door);
      assert.ok(DOORS[name]?.some(isDoor), `src/${file.name} imports ${specifier}`);
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

test('no test file is longer than 400 lines, or awaits something between its tests: later ones would be lost', () => {
  for (const file of testsByName(path.join(root, 'test')).values()) {
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n').length - 1;
    assert.ok(lines <= TEST_LINES_MAX, `${file} has ${lines} lines: split it`);
    // The runner ends once all tests that it knows have ended.
    assert.doesNotMatch(
      text,
      /^(?: {2})?(?:test|describe)\([\s\S]*^(?:await|(?:const|let)\b.* = await)\b/m,
      file,
    );
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

test('each invariant names existing tests, of which one has a planted fault, or is of the executable', () => {
  const [, promises = ''] = topic('invariants').split(/^## /m);
  const tests = testsByName(path.join(root, 'test'));
  const planted = new Set(PLANTED_FAULTS.map(({ test: name }) => name));
  const rows = tableRows(promises);
  assert.ok(rows.length >= 20);
  for (const [promise, , shown = ''] of rows) {
    const names = [...shown.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name);
    for (const name of names) assert.ok(tests.has(name), name);
    const isShown = names.some((name) => planted.has(name) || name.startsWith('executable'));
    assert.ok(isShown, promise);
  }
});
