/** When `wirewatch pull` repeats a request, and when it never does (contract: Retry). */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { runBeside } from '../../support/command.ts';
import { type Responses, withService } from '../../support/pull.ts';

/** Pulls changes from a service with these responses: how it ends, what it says, and how often it asks. */
function retryTest(title: string, responses: Responses, code: number, said: RegExp, asked: number): void {
  test(title, () =>
    withService([], responses, async (to, folder, requests) => {
      const since = ['--since', new Date(Date.now() - 60_000).toISOString()];
      const { status, stderr } = await runBeside([...to, ...since, '--into', join(folder, 'copy.db')]);
      assert.equal(status, code, stderr);
      assert.match(stderr, said);
      assert.deepEqual(requests, Array(asked).fill(requests[0]), 'the same request');
    }),
  );
}

for (const status of [400, 401, 403, 404]) {
  const said = new RegExp(`answered with status ${status}: because of ${status}`);
  retryTest(`${status} is never retried`, [[status, {}]], 1, said, 1);
}

for (const status of [429, 500, 502, 503, 504]) {
  const said = new RegExp(`because of ${status}; waiting 0 s`);
  retryTest(`${status} is retried after Retry-After`, [[status, { 'retry-after': '0' }]], 0, said, 2);
}

for (const after of ['0', new Date(Date.now() - 60_000).toUTCString()]) {
  const responses = Array(3).fill([503, { 'retry-after': after }]);
  const title = `a service whose Retry-After is always ${after === '0' ? after : 'in the past'} is not asked at once again and again`;
  retryTest(title, responses, 0, /waiting 0 s[\s\S]*waiting 2 s[\s\S]*waiting 4 s/, 4);
}

const MOVED = /\/changes redirects to http:\S+\/moved\. If .* --base-url\.\n$/;
retryTest('a redirect is not followed, but named', [[308, { location: '/moved' }]], 1, MOVED, 1);

const DOUBLED = /waiting 1 s[\s\S]*waiting 2 s/;
retryTest('without Retry-After the wait doubles', Array(2).fill([503, {}]), 0, DOUBLED, 3);
