/** The tables of the contract's rules and of the documents' promises: each names an existing test, and none is listed twice. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { TOPICS } from '../../src/manual/topics.ts';
import { OPERATIONS } from '../../src/openapi/operations.ts';
import { PROBLEMS } from '../../src/problem-titles.ts';
import { testsByName } from '../support/test-files.ts';
import { CONFORMANCE } from './conformance.ts';
import { EXCUSED, PROMISES } from './promises.ts';

/**
 * The names of the tests in a file: arguments of `test` and of functions whose name ends in `Test`. `…` replaces each
 * placeholder of a template.
 */
function testNames(text: string): Set<string> {
  const calls = text.matchAll(
    /\b(?:test|\w+Test)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g,
  );
  const names = [...calls].map(
    ([, single, double, template]) => single ?? double ?? template?.replace(/\$\{[^}]*\}/g, '…') ?? '',
  );
  return new Set(names.map((name) => name.replaceAll('\\', '')));
}

const files = [...testsByName(path.join(import.meta.dirname, '..'))];
const tests = new Map(files.map(([name, file]) => [name, testNames(readFileSync(file, 'utf8'))]));

test('every rule names a test that exists', () => {
  assert.ok(CONFORMANCE.length > 200);
  const missing = [...CONFORMANCE, ...PROMISES].filter(
    ({ file, test: name }) => tests.get(file)?.has(name) !== true,
  );
  assert.deepEqual(missing, []);
});

test('no rule is listed twice', () => {
  const seen = [...CONFORMANCE, ...PROMISES].map(({ section, rule }) => `${section}: ${rule}`);
  const repeated = seen.filter((one, at) => seen.indexOf(one) !== at);
  assert.deepEqual(repeated, []);
});

test('every endpoint, parameter and error of the service is among the rules', () => {
  const sections = new Set(CONFORMANCE.map(({ section }) => section));
  const within = (...names: string[]) =>
    CONFORMANCE.filter(({ section }) => names.includes(section)).map(({ rule }) => rule);
  for (const { method, path: where, parameters = [] } of OPERATIONS) {
    // What clients find without a credential is beside the contract: photos, and the two documents about the API.
    if (method === 'head' || /^\/(photos\/|\.well-known\/|v1\/openapi\.json)/.test(where)) continue;
    const section = `${method.toUpperCase()} ${where}`;
    assert.ok(sections.has(section), section);
    const rules = within(section, 'Common detection filters', 'Versioning');
    for (const { name } of parameters) {
      const isNamed = rules.some((rule) => rule.split(/[^\w-]+/).includes(name));
      assert.ok(isNamed || name === 'id', `${section}: ${name}`);
    }
  }
  const errors = within('Errors').join('\n');
  for (const { status } of Object.values(PROBLEMS)) assert.match(errors, new RegExp(`\\b${status}\\b`));
});

const PROMISING =
  /\b(never|always|exactly|at most|at least|within|nothing is|nothing else|(change[sd]?|overwrites?|deletes|stores|starts|loses|skips?|hides|stops|notices?) nothing|no \w+ is lost|survives?|at any moment|stays? (valid|revoked)|completely)\b/i;

/** What a page promises: its sentences with such words, without code and headings, and the points of README's list. */
function promisesOf(page: string): string[] {
  const folder = path.join(import.meta.dirname, '..', '..', page === 'README.md' ? '' : 'src/manual');
  const text = readFileSync(path.join(folder, page), 'utf8');
  const [, list = ''] = /^## What it promises\n([\s\S]*?)^It does not/m.exec(text) ?? [];
  const prose = text.replaceAll(/<!--[\s\S]*?-->|^ *```[\s\S]*?^ *```|^#+ .*|^!\[.*/gm, '');
  const sentences = prose.split(/\n+|(?<!\\)\||(?<=[.:;?!])\s+(?=[A-Z`*[])/);
  return [...list.split(/^- /m), ...sentences.filter((one) => PROMISING.test(one))].filter((one) =>
    /\w/.test(one),
  );
}

test('every promise of README and the manual has a test, and still stands there', () => {
  // The promises of the page on invariants name their tests themselves.
  const pages = TOPICS.map(({ name }) => `${name}.md`).filter((page) => page !== 'invariants.md');
  const listed = [...PROMISES.map(({ rule }) => rule), ...Object.values(EXCUSED)].flatMap((said) =>
    said.split('; ').flatMap((one) => {
      const [where = '', part = ''] = one.split(': ');
      return where.split(' ').map((page) => [`${page}.md`, part] as const);
    }),
  );
  const promises = ['README.md', ...pages].flatMap((page) =>
    promisesOf(page).map((said) => [page, said] as const),
  );
  const covers = ([page, part]: readonly [string, string], [where, said]: readonly [string, string]) =>
    page === where && said.includes(part);
  const untested = promises.filter((promise) => !listed.some((one) => covers(one, promise)));
  const gone = listed.filter((one) => !promises.some((promise) => covers(one, promise)));
  assert.deepEqual([untested, gone], [[], []]);
});
