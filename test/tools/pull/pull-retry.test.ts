/** When `wirewatch pull` repeats a request, and when it never does (contract: Retry). */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { type EndedCommand, runBeside } from '../../support/command.ts';
import { type Responses, withService } from '../../support/pull.ts';

/** @param use gets how pull ended, and what it asked of the change stream */
const against = (
  responses: Responses,
  use: (pulled: EndedCommand & { readonly requests: readonly string[] }) => void,
) =>
  withService([], responses, async (to, folder, requests) => {
    const since = ['--since', new Date(Date.now() - 60_000).toISOString()];
    use({ ...(await runBeside([...to, ...since, '--into', join(folder, 'copy.db')])), requests });
  });

for (const answered of [400, 401, 403, 404])
  test(`${answered} is never retried`, () =>
    against([[answered, {}]], ({ status, stderr, requests }) => {
      assert.equal(status, 1);
      assert.match(stderr, new RegExp(`answered with status ${answered}: because of ${answered}`));
      assert.equal(requests.length, 1);
    }));

for (const answered of [429, 500, 502, 503, 504])
  test(`${answered} is retried after Retry-After`, () =>
    against([[answered, { 'retry-after': '0' }]], ({ status, stderr, requests }) => {
      assert.equal(status, 0, stderr);
      assert.match(stderr, new RegExp(`because of ${answered}; waiting 0 s`));
      assert.equal(requests.length, 2);
      assert.equal(requests[0], requests[1], 'the same request');
    }));

const PAST = { '0 seconds': '0', 'a time in the past': new Date(Date.now() - 60_000).toUTCString() };
for (const [name, after] of Object.entries(PAST))
  test(`a service whose Retry-After is always ${name} is not asked at once again and again`, () =>
    against(Array(3).fill([503, { 'retry-after': after }]), ({ status, stderr, requests }) => {
      assert.equal(status, 0, stderr);
      assert.match(stderr, /waiting 0 s[\s\S]*waiting 2 s[\s\S]*waiting 4 s/);
      assert.equal(requests.length, 4);
    }));

test('a redirect is not followed, but named', () =>
  against([[308, { location: '/moved' }]], ({ status, stderr, requests }) => {
    assert.equal(status, 1);
    assert.match(stderr, /\/changes redirects to http:\S+\/moved\. If .* --base-url\.\n$/);
    assert.equal(requests.length, 1);
  }));

test('without Retry-After the wait doubles', () =>
  against(Array(2).fill([503, {}]), ({ status, stderr, requests }) => {
    assert.equal(status, 0, stderr);
    assert.match(stderr, /waiting 1 s[\s\S]*waiting 2 s/);
    assert.equal(requests.length, 3);
  }));
