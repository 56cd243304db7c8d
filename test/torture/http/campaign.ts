/**
 * Sends generated requests and checks every response: it is never 500, always has a request id and Cache-Control,
 * matches the OpenAPI document in status, headers and body, and contains no secret.
 */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { SCHEMAS } from '../../../src/openapi/schemas.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { checkBody, checkResponse } from '../../support/checked-fetch.ts';
import { parseResponses, type RawResponse, sendBytes } from '../../support/raw-http.ts';
import { seededPrng } from '../../support/seeded-prng.ts';
import { type PartOptions, shareOf } from '../part.ts';
import { type FuzzFacts, type FuzzRequest, makeRequest } from './requests.ts';
import type { Target } from './target.ts';

/** Responses, after which it ends. */
const REQUESTS = 2_000_000;
const PIPELINED_MAX = 5;
const FAILURES_MAX = 10;
/** Concurrent connections, to keep the program busy. */
const WORKERS = 4;
const PROGRESS_EVERY_CONNECTIONS = 500;
/** Malformed bytes may be the start of a request: then both sides wait for the other. */
const UNSURE_TIMEOUT_MS = 50;

type Note = (response: RawResponse) => void;

/** Counts `requests`, `connections` and `answered STATUS`; a failure names the connection that repeats it. */
export async function runCampaign({ facts, secrets }: Target, options: PartOptions): Promise<void> {
  const { tally } = options;
  const seed = `${options.seed}`;
  const requests = shareOf(options, REQUESTS);
  let connections = 0;
  let responses = 0;
  let failures = 0;
  const note: Note = (response) => {
    responses += 1;
    tally.count('requests');
    tally.count(`answered ${response.status}`);
    secrets.search(
      `a response ${response.status}`,
      `${[...response.headers].map((header) => header.join(': ')).join('\n')}\n${response.body}`,
    );
  };
  const work = async () => {
    while (responses < requests && failures < FAILURES_MAX) {
      const connection = connections;
      connections += 1;
      tally.count('connections');
      // The number of a connection determines what it sends.
      const prng = seededPrng(seed, 'fuzz', connection);
      try {
        if (prng.chance(0.1)) await tryMalformed(prng, facts, note);
        else await tryRequests(prng, facts, note);
      } catch (error) {
        const why = error instanceof Error ? error.message : error;
        failures += 1;
        tally.failures.push(`seed ${seed}, connection ${connection}: ${why}`);
      }
      if (connections % PROGRESS_EVERY_CONNECTIONS === 0)
        options.onProgress(`${responses} requests answered`);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
}

function connectTo({ host }: FuzzFacts): Socket {
  const { hostname, port } = new URL(`http://${host}`);
  return connect(Number(port), hostname);
}

async function tryRequests(prng: Prng, facts: FuzzFacts, note: Note): Promise<void> {
  const requests = Array.from({ length: 1 + prng.below(PIPELINED_MAX) }, () => makeRequest(prng, facts));
  const bytes = requests.map((request, at) => bytesOf(request, facts.host, at === requests.length - 1));
  const received = await sendBytes(connectTo(facts), Buffer.concat(bytes));
  const methods = requests.map(({ method }) => method);
  const responses = parseResponses(received, methods);
  for (const [at, response] of responses.entries()) {
    note(response);
    const request = requests[at];
    assert.ok(request, `an extra response: ${response.status} ${response.body}`);
    check(request, response);
  }
  // A server may end the connection after a response with Connection: close.
  const isEnded = responses.at(-1)?.headers.get('connection') === 'close';
  assert.ok(isEnded, `${responses.length} responses to ${shown(Buffer.concat(bytes))}`);
}

function check(request: FuzzRequest, response: RawResponse): void {
  const { method, target } = request;
  try {
    assert.notEqual(response.status, 500);
    // Only health may be 503: no export is recent.
    const mayBeUnable = target.includes('/v1/health');
    assert.ok(response.status !== 503 || mayBeUnable, '503 means that keys cannot be checked');
    checkResponse({ method, target, ...response });
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    throw new Error(
      `${why}\n  ${JSON.stringify(request)}\n  ${response.status} ${response.body.slice(0, 500)}`,
    );
  }
}

async function tryMalformed(prng: Prng, facts: FuzzFacts, note: Note): Promise<void> {
  const bytes = changed(prng, bytesOf(makeRequest(prng, facts), facts.host, true));
  const isHead = bytes.toString('latin1', 0, 5) === 'HEAD ';
  const responsesOf = (received: Buffer) => {
    try {
      return parseResponses(received, [isHead ? 'HEAD' : 'GET', 'GET']);
    } catch (error) {
      // A server that cannot parse a request does not know that it was HEAD.
      if (isHead) return parseResponses(received, ['GET', 'GET']);
      throw error;
    }
  };
  // Some responses leave the connection open.
  const isEnough = (soFar: Buffer) => {
    try {
      return responsesOf(soFar).length > 0;
    } catch {
      return false;
    }
  };
  const [response] = responsesOf(await sendBytes(connectTo(facts), bytes, isEnough, UNSURE_TIMEOUT_MS));
  if (response === undefined) return;
  note(response);
  const what = `${shown(bytes)}: ${response.status} ${response.body.slice(0, 300)}`;
  assert.notEqual(response.status, 500, what);
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/, what);
  assert.ok(response.headers.has('cache-control'), what);
  if (response.headers.get('content-type') !== 'application/problem+json' || response.body === '') return;
  const problem = JSON.parse(response.body);
  checkBody(what, SCHEMAS.Problem, problem);
  assert.equal(problem.status, response.status, what);
  assert.equal(problem.request_id, response.headers.get('x-request-id'), what);
}

/** Changes some bytes, and sometimes cuts off the end. */
function changed(prng: Prng, good: Buffer): Buffer {
  const bytes = Buffer.from(good);
  for (let left = 1 + prng.below(4); left > 0; left -= 1) bytes[prng.below(bytes.length)] = prng.below(256);
  return bytes.subarray(0, prng.chance(0.2) ? prng.below(bytes.length) : bytes.length);
}

const shown = (bytes: Buffer): string => JSON.stringify(bytes.toString('latin1', 0, 2000));

function bytesOf({ method, target, headers, body }: FuzzRequest, host: string, last: boolean): Buffer {
  const lines = [
    `${method} ${target} HTTP/1.1`,
    `Host: ${host}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [`Content-Length: ${body.length}`]),
    ...(last ? ['Connection: close'] : []),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body ?? Buffer.alloc(0)]);
}
