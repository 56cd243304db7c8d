/** A browser, as the console's server sees it: redeems a link, and sends the secret of its session. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Jobs, Outcome, SessionBegun } from '../../src/admin/console/api.ts';
import type { Job } from '../../src/operations/jobs.ts';
import type { Installation } from './appliance.ts';

export type Reply = Readonly<{ status: number; headers: IncomingHttpHeaders; text: string }>;

type HeadersSent = Readonly<Record<string, string>>;

/** The headers that a browser adds to what the console's pages send. */
export const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };

export function withSecret(secret: string): { readonly authorization: string } {
  return { authorization: `Bearer ${secret}` };
}

/** @param url of the administration, with the path */
export async function send(
  method: string,
  url: string,
  headers: HeadersSent = {},
  body?: unknown,
): Promise<Reply> {
  // The server could close a keep-alive connection at the same moment.
  const sent = request(url, { method, headers, agent: false }).end(
    body === undefined ? undefined : JSON.stringify(body),
  );
  const [response] = await once(sent, 'response');
  let text = '';
  for await (const piece of response) text += piece;
  return { status: response.statusCode, headers: response.headers, text };
}

/** The link that `wirewatch console` prints; `options` may name the person. */
export const linkOf = (installation: Pick<Installation, 'cli'>, ...options: readonly string[]): string =>
  JSON.parse(installation.cli(['console', ...options, '--json']).stdout).url;

export async function redeem(link: string): Promise<Reply> {
  const { origin, hash } = new URL(link);
  const token = hash.slice('#login='.length);
  return send('POST', `${origin}/console/session`, OWN_PAGE, { token });
}

export type Console = ReturnType<typeof consoleOf>;

export async function openConsole(
  installation: Pick<Installation, 'cli'>,
  ...options: readonly string[]
): Promise<Console> {
  const link = linkOf(installation, ...options);
  const reply = await redeem(link);
  assert.equal(reply.status, 200, reply.text);
  const { secret }: SessionBegun = JSON.parse(reply.text);
  return consoleOf(new URL(link).origin, secret);
}

export function consoleOf(origin: string, secret: string) {
  const ask = (path: string) => send('GET', `${origin}/console/${path}`, withSecret(secret));
  /** The response to a GET, which must be 200. */
  const get = async <Value>(path: string): Promise<Value> => {
    const { status, text } = await ask(path);
    assert.equal(status, 200, `${path}: ${text}`);
    return JSON.parse(text);
  };
  const postTo = (path: string, body: unknown, headers: HeadersSent) =>
    send('POST', `${origin}/${path}`, { ...headers, ...withSecret(secret) }, body);
  const post = (path: string, body: unknown = {}) => postTo(`console/${path}`, body, OWN_PAGE);
  /** Asks for an operation, such as `key create`, as the app does. */
  const operate = (operation: string, given: unknown = {}, headers: HeadersSent = OWN_PAGE) => {
    const all = { 'content-type': 'application/json', ...headers };
    return postTo(`operations/${operation.replaceAll(' ', '-')}`, given, all);
  };
  const done = async <Value>(status: number, operation: string, given: unknown, headers = {}) => {
    const reply = await operate(operation, given, { ...OWN_PAGE, ...headers });
    assert.equal(reply.status, status, `${operation}: ${reply.text}`);
    const value: Value = JSON.parse(reply.text);
    return value;
  };
  return {
    ...{ origin, secret, ask, get, post, operate },
    /** An operation that must be possible, when it has ended. */
    act: (operation: string, given?: unknown) => done<Outcome>(200, operation, given),
    /** One that becomes a job, when it has ended. */
    async job(operation: string, given?: unknown): Promise<Job> {
      const begun = await done<Job>(202, operation, given, { prefer: 'respond-async' });
      for (;;) {
        const { jobs } = await get<Jobs>('jobs');
        const job = jobs.find(({ id }) => id === begun.id);
        assert.ok(job !== undefined, `${operation} is in the list of jobs`);
        if (job.state !== 'running') return job;
        await wait(20);
      }
    },
  };
}
