/**
 * Sends generated requests and checks every response: never 500, always a request id and Cache-Control, a status, headers
 * and body as in the OpenAPI document, and no secret.
 */
import assert from 'node:assert/strict';
import type { Prng } from '../../../src/generate/prng.ts';
import { SCHEMAS } from '../../../src/openapi/schemas.ts';
import { checkBody, checkResponse } from '../../support/checked-fetch.ts';
import { parseResponses, type RawResponse, sendBytes } from '../../support/raw-http.ts';
import { seededPrng } from '../../support/seeded-prng.ts';
import { makeMalformed } from './malformed.ts';
import { type FuzzFacts, type FuzzRequest, makeRequest } from './requests.ts';
import type { Secrets } from './secrets.ts';

export interface Campaign {
  readonly facts: FuzzFacts;
  readonly seed: string;
  /** Requests to send, counted by responses. */
  readonly requests: number;
  readonly secrets: Secrets;
  /** Called now and then, with the number of responses so far. */
  readonly onProgress: (answers: number) => void;
}

export interface CampaignOutcome {
  readonly connections: number;
  readonly answers: number;
  /** The count of each status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** In words, with what is needed to repeat it. */
  readonly failures: readonly string[];
}

const PIPELINED_MAX = 5;
const FAILURES_MAX = 10;
/** Concurrent connections, to keep the program busy. */
const WORKERS = 4;
const PROGRESS_EVERY_CONNECTIONS = 500;
/** Both sides wait for the rest of bytes that may begin a request: not for long. */
const UNSURE_PATIENCE_MS = 50;

export async function runCampaign(campaign: Campaign): Promise<CampaignOutcome> {
  const { facts, seed, requests, secrets, onProgress } = campaign;
  const statuses = new Map<number, number>();
  const failures: string[] = [];
  let connections = 0;
  let answers = 0;
  const note = (answer: RawResponse) => {
    answers += 1;
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    secrets.search(
      `an answer ${answer.status}`,
      `${[...answer.headers].map((header) => header.join(': ')).join('\n')}\n${answer.body}`,
    );
  };
  const work = async () => {
    while (answers < requests && failures.length < FAILURES_MAX) {
      const connection = connections;
      connections += 1;
      // The number of a connection determines what it sends.
      const prng = seededPrng(seed, 'fuzz', connection);
      try {
        if (prng.chance(0.1)) await tryMalformed(prng, facts, note);
        else await tryRequests(prng, facts, note);
      } catch (error) {
        const why = error instanceof Error ? error.message : error;
        failures.push(`seed ${seed}, connection ${connection}: ${why}`);
      }
      if (connections % PROGRESS_EVERY_CONNECTIONS === 0) onProgress(answers);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  return { connections, answers, statuses, failures };
}

async function tryRequests(prng: Prng, facts: FuzzFacts, note: (answer: RawResponse) => void): Promise<void> {
  const requests = Array.from({ length: 1 + prng.below(PIPELINED_MAX) }, () => makeRequest(prng, facts));
  const bytes = requests.map((request, at) => bytesOf(request, facts.host, at === requests.length - 1));
  const received = await sendBytes(facts.host, Buffer.concat(bytes));
  const answers = parseResponses(
    received,
    requests.map(({ method }) => method),
  );
  for (const [at, answer] of answers.entries()) {
    note(answer);
    const request = requests[at];
    assert.ok(request, `an answer too many: ${answer.status} ${answer.body}`);
    check(request, answer);
  }
  // A server may end the connection after a response with Connection: close.
  const isEnded = answers.at(-1)?.headers.get('connection') === 'close';
  assert.ok(isEnded, `${answers.length} answers to ${shown(Buffer.concat(bytes))}`);
}

function check(request: FuzzRequest, answer: RawResponse): void {
  const { method, target } = request;
  try {
    assert.notEqual(answer.status, 500);
    // Health may report that no export is recent; keys can be checked.
    assert.ok(answer.status !== 503 || target.includes('/v1/health'), 'credentials can be verified');
    checkResponse({ method, target, ...answer });
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    throw new Error(`${why}\n  ${JSON.stringify(request)}\n  ${answer.status} ${answer.body.slice(0, 500)}`);
  }
}

async function tryMalformed(
  prng: Prng,
  facts: FuzzFacts,
  note: (answer: RawResponse) => void,
): Promise<void> {
  const good = bytesOf(makeRequest(prng, facts), facts.host, true);
  const { bytes, mustAnswer } = makeMalformed(prng, facts, good);
  const isHead = bytes.toString('latin1', 0, 5) === 'HEAD ';
  const answersOf = (received: Buffer) => {
    try {
      return parseResponses(received, [isHead ? 'HEAD' : 'GET', 'GET']);
    } catch (error) {
      // A server that cannot parse a request does not know that it was HEAD.
      if (isHead) return parseResponses(received, ['GET', 'GET']);
      throw error;
    }
  };
  // Some responses leave the connection open.
  const received = await sendBytes(
    facts.host,
    bytes,
    mustAnswer ? undefined : UNSURE_PATIENCE_MS,
    (soFar) => {
      try {
        return answersOf(soFar).length > 0;
      } catch {
        return false;
      }
    },
  );
  const [answer] = answersOf(received);
  if (answer === undefined) {
    assert.ok(!mustAnswer, `no answer to ${shown(bytes)}`);
    return;
  }
  note(answer);
  const what = `${shown(bytes)}: ${answer.status} ${answer.body.slice(0, 300)}`;
  assert.ok(!mustAnswer || (answer.status >= 400 && answer.status < 500), what);
  assert.notEqual(answer.status, 500, what);
  assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/, what);
  assert.ok(answer.headers.has('cache-control'), what);
  if (answer.headers.get('content-type') !== 'application/problem+json' || answer.body === '') return;
  const problem = JSON.parse(answer.body);
  checkBody(what, SCHEMAS.Problem, problem);
  assert.deepEqual(
    [problem.status, problem.request_id],
    [answer.status, answer.headers.get('x-request-id')],
    what,
  );
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('latin1', 0, 2000));
}

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
