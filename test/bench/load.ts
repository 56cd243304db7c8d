/** An HTTP load generator: a fixed number of requests over a fixed number of connections, each after the last response. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';

export interface Load {
  readonly url: string;
  readonly requests: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path: PathOf;
}

/** The path of a connection's next request; `answer` is its last response, null before the first. */
export type PathOf = (connection: number, answer: Buffer | null) => string;

export const CONNECTIONS = 8;

/** @returns requests per second */
export async function runLoad({ url, requests, headers = {}, path }: Load): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = requests;
  const worker = async (connection: number) => {
    for (let answer: Buffer | null = null; left > 0; ) {
      left -= 1;
      answer = await get(agent, `${url}${path(connection, answer)}`, headers);
    }
  };
  // On a virtual machine, waking a sleeping peer takes the server longer than the response itself.
  const spin = () => {
    if (left > 0) setImmediate(spin);
  };
  spin();
  const startMs = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, connection) => worker(connection)));
  agent.destroy();
  return (requests * 1000) / (performance.now() - startMs);
}

async function get(agent: Agent, url: string, headers: Readonly<Record<string, string>>): Promise<Buffer> {
  const [response] = await once(request(url, { agent, headers }).end(), 'response');
  const body = Buffer.concat(await response.toArray());
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode} ${body}`);
  return body;
}

/** Paths that read pages of 1,000 rows to the end of the change stream, and start again there. */
export function walkOf(scope = ''): PathOf {
  const pages = '/v1/detections/changes?limit=1000';
  const first = `${pages}&since=${new Date(Date.now() - 3_600_000).toISOString()}`;
  return (_, answer) => {
    const tail = answer?.toString('latin1', Math.max(0, answer.length - 300)) ?? '';
    const cursor = /"has_more":true/.test(tail) ? /"next_cursor":"([^"]+)"/.exec(tail)?.[1] : undefined;
    return (cursor === undefined ? first : `${pages}&cursor=${cursor}`) + scope;
  };
}

/** Of a thin server, the number at the end of an answer: the next page starts after it, and after 0 the first. */
export function walkPlaces(_: number, answer: Buffer | null): string {
  const tail = answer?.toString('latin1', Math.max(0, answer.length - 20)) ?? '';
  return `/${/\d+$/.exec(tail)?.[0] ?? '0'}`;
}

export const authorization = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
