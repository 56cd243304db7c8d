/** Shared by tests of all endpoints: their paths, a server with two detections, and the members of every problem. */
import assert from 'node:assert/strict';
import { NOW_MS, sharedServer, startTestServer, type TestServer, type TestServerOptions } from './server.ts';
import { textRows } from './store.ts';
import { granted, inBody, postToken } from './token-client.ts';

export const CHANGES = '/v1/detections/changes?since=2026-11-21T00:00:00Z';
export const PERIOD = '/v1/detections?from=2026-11-20&to=2026-11-20';
export const ONE = '/v1/detections/t.7001.1.1';
export const ME = '/v1/me';
export const SCHEMA = '/v1/schema/detection';
export const HEALTH = '/v1/health';
export const TOKEN = '/oauth/token';
export const READS = [CHANGES, PERIOD, ONE];
export const KEYED = [...READS, ME, SCHEMA];
export const ALL = [...KEYED, HEALTH, TOKEN];
export const RATE = ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'];
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A server with two detections of subscription 7001, for all tests of a file. */
export async function sharedWithDetections(): Promise<TestServer> {
  const server = await sharedServer({ base_url: 'https://api.example/ww' });
  server.store.deliver(textRows(2), NOW_MS - 60_000);
  return server;
}

export const pathOf = (target: string) => target.split('?')[0] ?? '';
export const hasRate = (response: Response) => RATE.filter((name) => response.headers.has(name)).length;

export async function tokenOf(at: TestServer, client: { id: string; key: string }): Promise<string> {
  const body = inBody({ id: client.id, secret: client.key });
  return (await granted(await postToken(at, body))).access_token;
}

/** @param rate the number of rate-limit headers: all four or none */
export async function assertProblem(
  response: Response,
  [status, code, title]: readonly [number, string, string],
  rate: 0 | 4,
  what: string,
): Promise<{ detail: string }> {
  const text = await response.text();
  assert.equal(response.status, status, `${what}: ${text}`);
  assert.equal(response.headers.get('content-type'), 'application/problem+json', what);
  assert.equal(hasRate(response), rate, what);
  const problem = JSON.parse(text);
  assert.deepEqual(Object.keys(problem), ['type', 'title', 'status', 'detail', 'request_id'], what);
  const expected = [`https://api.example/ww/errors/${code}`, title, status];
  assert.deepEqual([problem.type, problem.title, problem.status], expected, what);
  assert.match(problem.detail, /^\S.+/, what);
  return problem;
}

/** Asks for each target, which must be the same problem. @param problem status, code and title @returns the details */
export async function assertProblems(
  at: TestServer,
  targets: readonly string[],
  reader: string | undefined,
  problem: readonly [number, string, string],
  rate: 0 | 4,
): Promise<string[]> {
  const details: string[] = [];
  for (const target of targets)
    details.push((await assertProblem(await at.get(target, reader), problem, rate, target)).detail);
  return details;
}

/** Runs a test on its own server, so that it does not disturb other tests. */
export async function withServer(
  options: TestServerOptions,
  use: (other: TestServer, key: string) => Promise<void>,
) {
  await using other = await startTestServer({ base_url: 'https://api.example/ww', ...options });
  other.store.deliver([{ content_type: 'text', version: 1, row: {} }], NOW_MS - 60_000);
  await use(other, other.makeKey().key);
}
