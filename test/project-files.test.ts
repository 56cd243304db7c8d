/** The files of the project: their places and names, exact versions, and what no file may mention. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { projectFiles, roomOf, root, sources } from './support/project-files.ts';
import { words } from './support/words.ts';

/**
 * Test folders without a folder in src: the complete program, its build, the contract's rules, tests that take minutes.
 */
const TEST_FOLDERS = ['appliance', 'build', 'contract', 'long'];

test('a test is in the folder of its subject, with a unique name', () => {
  const rooms = new Set([...sources.map(({ name }) => roomOf(name)), ...TEST_FOLDERS]);
  const names = new Map<string, string>();
  for (const name of projectFiles().filter((file) => file.endsWith('.test.ts'))) {
    const within = name.replace('test/', '');
    const folder = roomOf(within);
    assert.ok(folder === within || rooms.has(folder), `${name}: src/${folder} does not exist`);
    const short = path.posix.basename(name);
    assert.ok(!names.has(short), `${name} and ${names.get(short)} have the same name`);
    names.set(short, name);
  }
  assert.ok(names.size > 100);
});

test('the top level has only what people expect there', () => {
  const expected = words(`
    .ci .editorconfig .gitignore .npmrc ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE README.md biome.json build
    config package-lock.json package.json src test tsconfig.json`);
  const found = new Set(projectFiles().map((name) => name.replace(/\/.*/, '')));
  assert.deepEqual([...found].sort(), expected);
});

test('files and folders have kebab-case names', () => {
  const named = projectFiles().filter((name) => /^(src|test|build|config)\//.test(name));
  assert.ok(named.length > sources.length);
  for (const name of named)
    for (const part of name.replace(/README\.md$/, 'readme.md').split('/'))
      assert.match(part, /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/, name);
});

type Optional = { readonly optionalDependencies?: object };

test('the packages have exact versions, and the lockfile names no registry and has every checksum', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(path.join(root, 'package.json'), 'utf8'),
  );
  const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
  assert.ok(versions.length > 10);
  for (const [name, version] of versions) assert.match(String(version), /^\d+\.\d+\.\d+$/, name);
  const lockfile = readFileSync(path.join(root, 'package-lock.json'), 'utf8');
  assert.doesNotMatch(lockfile, /"resolved": *"/);
  const { '': _, ...locked } = JSON.parse(lockfile).packages;
  for (const [place, { optionalDependencies = {} }] of Object.entries<Optional>(locked))
    for (const name of Object.keys(optionalDependencies)) {
      const isLocked = ['', `${place}/`].some((above) => `${above}node_modules/${name}` in locked);
      assert.ok(isLocked, `npm ci wants ${name}`);
    }
  const unchecked = Object.entries(locked).filter(([, entry]) => !/^sha512-/.test(Object(entry).integrity));
  assert.deepEqual(unchecked, []);
  assert.doesNotMatch(readFileSync(path.join(root, '.npmrc'), 'utf8'), /registry *=/);
});

test('nothing names the build machine, a registry, or how the work was divided', () => {
  // Composed from parts, since this file is searched, too.
  const forbidden = [
    ['\\.\\./sha', 'red\\b'],
    ['(?<![\\w.-])/(root|home|Users)/', '[a-z]'],
    ['(?<![\\w.-])/wo', 'rk/[a-z]'],
    ['registry\\.', '(npmjs|yarnpkg|npmmirror)'],
    ['(art', 'ifactory|verd', 'accio)'],
    ['\\bdecisions? ', '\\d'],
  ].map((parts) => new RegExp(parts.join(''), 'i'));
  for (const name of projectFiles()) {
    const text = readFileSync(path.join(root, name), 'utf8');
    for (const pattern of forbidden) {
      const at = text.search(pattern);
      assert.equal(at, -1, `${name}: ${text.slice(Math.max(0, at - 40), at + 60)}`);
    }
  }
});
