/** When `wirewatch pull` repeats a request, and when it never does (contract: Retry). */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pulled, type Responses, withService } from '../../support/pull.ts';

describe('pull, when the response is not a page', () => {
  const against = (
    responses: Responses,
    use: (program: { code: number | null; stderr: string }, requests: string[]) => void,
  ) =>
    withService([], responses, async (to, folder, requests) => {
      const since = ['--since', new Date(Date.now() - 60_000).toISOString()];
      use(await pulled([...to, ...since, '--into', join(folder, 'copy.db')]), requests);
    });

  const isNeverRepeated = (status: number) =>
    against([[status, {}]], ({ code, stderr }, requests) => {
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`answered with status ${status}: because of ${status}`));
      assert.equal(requests.length, 1);
    });

  test('400 is never retried', () => isNeverRepeated(400));
  test('401 is never retried', () => isNeverRepeated(401));
  test('403 is never retried', () => isNeverRepeated(403));
  test('404 is never retried', () => isNeverRepeated(404));

  const isRepeated = (status: number) =>
    against([[status, { 'retry-after': '0' }]], ({ code, stderr }, requests) => {
      assert.equal(code, 0, stderr);
      assert.match(stderr, new RegExp(`because of ${status}; waiting 0 s`));
      assert.equal(requests.length, 2);
      assert.equal(requests[0], requests[1], 'the same request');
    });

  test('429 is retried after Retry-After', () => isRepeated(429));
  test('500 is retried after Retry-After', () => isRepeated(500));
  test('502 is retried after Retry-After', () => isRepeated(502));
  test('503 is retried after Retry-After', () => isRepeated(503));
  test('504 is retried after Retry-After', () => isRepeated(504));

  for (const [name, after] of [
    ['0 seconds', '0'],
    ['a time in the past', new Date(Date.now() - 60_000).toUTCString()],
  ] as const)
    test(`a service whose Retry-After is always ${name} is not asked at once again and again`, () =>
      against(
        Array.from({ length: 3 }, () => [503, { 'retry-after': after }]),
        ({ code, stderr }, requests) => {
          assert.equal(code, 0, stderr);
          assert.match(stderr, /waiting 0 s[\s\S]*waiting 2 s[\s\S]*waiting 4 s/);
          assert.equal(requests.length, 4);
        },
      ));

  test('a redirect is not followed, but named', () =>
    against([[308, { location: '/moved' }]], ({ code, stderr }, requests) => {
      assert.equal(code, 1);
      assert.match(stderr, /\/changes redirects to http:\S+\/moved\. If .* --base-url\.\n$/);
      assert.equal(requests.length, 1);
    }));

  test('without Retry-After the wait doubles', () =>
    against(
      [
        [503, {}],
        [503, {}],
      ],
      ({ code, stderr }, requests) => {
        assert.equal(code, 0, stderr);
        assert.match(stderr, /waiting 1 s[\s\S]*waiting 2 s/);
        assert.equal(requests.length, 3);
      },
    ));
});
