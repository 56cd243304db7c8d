/** URLs in export rows: percent-encoding, and its cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readAddress } from '../../src/exports/article-address.ts';

const CLEAN = /[A-Za-z0-9\-._~!$&'()*+,;=:@/?]/;

/** A simple implementation of the encoding, character by character. */
function encodePlainly(part: string): string {
  return part.replace(/%(?![0-9A-Fa-f]{2})|[^%]/gu, (character) =>
    character === '%' ? '%25' : CLEAN.test(character) ? character : encodeURIComponent(character),
  );
}

function read(given: string): string {
  const address = readAddress(given);
  return typeof address === 'string' ? address : assert.fail(address.expected);
}

test('only disallowed characters are percent-encoded, each of a run', () => {
  const cases: [path: string, encoded: string][] = [
    ["a-b_c.~!$&'()*+,;=:@/d", "a-b_c.~!$&'()*+,;=:@/d"],
    ['%41%zz%4%', '%41%25zz%254%25'],
    ['%%41', '%25%41'],
    ['"<>\\^`{|}[]', '%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D'],
    ['Zürich-\u{1f4f7}\u{1f4f7}é', 'Z%C3%BCrich-%F0%9F%93%B7%F0%9F%93%B7%C3%A9'],
  ];
  for (const [path, encoded] of cases) {
    assert.equal(
      read(`https://example.com/${path}?${path}#${path}`),
      `https://example.com/${encoded}?${encoded}#${encoded}`,
    );
  }
});

test('runs are encoded as their characters are one by one', () => {
  const character = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('%', '%4', '%41', '%c3', '%zz', 'a', 'f', '9', '"', '[', ']', '^', 'é', '\u{1f4f7}'),
  );
  const part = fc
    .array(character, { maxLength: 60 })
    .map((characters) => characters.join('').replace(/[\s\u0000-\u001f\u007f-\u009f?#]/g, ''));
  fc.assert(
    fc.property(part, part, part, (path, query, fragment) => {
      assert.equal(
        read(`https://example.com/${path}?${query}#${fragment}`),
        `https://example.com/${encodePlainly(path)}?${encodePlainly(query)}#${encodePlainly(fragment)}`,
      );
    }),
    { numRuns: 2000 },
  );
});
