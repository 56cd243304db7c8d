/** The table of the contract's rules: each names an existing test, and no rule is listed twice. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { FIELDS } from '../../src/detection/fields.ts';
import { PROBLEMS } from '../../src/error-codes.ts';
import { OPERATIONS } from '../../src/openapi/operations.ts';
import { testsByName } from '../support/test-files.ts';
import { CONFORMANCE } from './conformance.ts';

/**
 * The names of the tests in a file: arguments of `test` and of functions whose name ends in `Test`. `…` replaces each
 * placeholder of a template.
 */
function testNames(text: string): Set<string> {
  const calls = text.matchAll(
    /\b(?:test|\w+Test)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`)/g,
  );
  return new Set(
    [...calls].map(([, single, double, template]) =>
      (single ?? double ?? template?.replace(/\$\{[^}]*\}/g, '…') ?? '').replaceAll('\\', ''),
    ),
  );
}

const tests = new Map(
  [...testsByName(path.join(import.meta.dirname, '..'))].map(([name, file]) => [
    name,
    testNames(readFileSync(file, 'utf8')),
  ]),
);

test('every rule names a test that exists', () => {
  assert.ok(CONFORMANCE.length > 200);
  const missing = CONFORMANCE.filter((rule) => tests.get(rule.file)?.has(rule.test) !== true);
  assert.deepEqual(
    missing.map(({ section, rule, file, test }) => `${section}: ${rule}: no '${test}' in ${file}.test.ts`),
    [],
  );
});

test('no rule is listed twice', () => {
  const seen = CONFORMANCE.map(({ section, rule }) => `${section}: ${rule}`);
  assert.deepEqual(
    seen.filter((one, at) => seen.indexOf(one) !== at),
    [],
  );
});

test('every field, endpoint, parameter and error of the service is among the rules', () => {
  const sections = new Set(CONFORMANCE.map(({ section }) => section));
  const within = (...names: string[]) =>
    CONFORMANCE.filter(({ section }) => names.includes(section)).map(({ rule }) => rule);
  for (const { path: field } of FIELDS) {
    assert.ok(
      within('Detection').some((rule) => rule.startsWith(`${field}: type`)),
      field,
    );
  }
  for (const { method, path: where, parameters } of OPERATIONS) {
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

test('the parser of test names finds every form', () => {
  const text = `test('a', () => {}); test("b's", { skip }, () => {}); fieldTest(\n  'c.d',\n 1); test(\`e\`); latest('f'); test(\`g \${h}: i\`);`;
  assert.deepEqual([...testNames(text)], ['a', "b's", 'c.d', 'e', 'g …: i']);
});
