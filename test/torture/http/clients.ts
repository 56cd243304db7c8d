/**
 * Thousands of concurrent clients that are silent, send or read too slowly, or close the connection. The program must
 * disconnect each with the right status, and meanwhile respond to a good client.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { bearer, parseResponses, rawRequest } from '../../support/raw-http.ts';
import { seededPrng } from '../../support/seeded-prng.ts';
import { until } from '../../support/until.ts';
import { type PartOptions, readProcess, shareOf } from '../part.ts';
import type { Target } from './target.ts';

interface Client {
  readonly socket: Socket;
  received: string;
  /** Closed or reset, by either side. */
  isOver: boolean;
}

interface Kind {
  readonly name: string;
  /** Sent immediately. */
  readonly first: (target: Target, prng: Prng) => string;
  /** Sent repeatedly, slower than the program accepts. */
  readonly trickle?: string;
  readonly neverReads?: boolean;
  /** When the client closes the connection: once its bytes are sent, or during the response. Absent: it does not. */
  readonly disconnects?: 'at once' | 'in the answer';
  /** The statuses that it must receive before the program closes the connection; by default none. */
  readonly statuses?: readonly number[];
}

/** Five thousand of them stay connected at the same time; the others soon close their connection. */
const CLIENTS = 7000;
const HEAD = 'GET /v1/health HTTP/1.1\r\nHost: x\r\n';
const PAGE = '/v1/detections/changes?limit=1000&since=';
/** Pipelined requests. */
const PIPELINED = 3;
/** Slower than the program accepts. */
const TRICKLE_EVERY_MS = 2000;
/**
 * A client that never reads does not notice that its connection was closed. It therefore sends two bytes after the
 * program's timeout: the peer resets the connection after the first, and the second write fails.
 */
const PROBES = 2;
const BETWEEN_PROBES_MS = 1000;
const OPENED_TOGETHER = 20;
/** Much longer than any timeout of the program. */
const ALL_CLOSED_TIMEOUT_MS = 900_000;
/** Files that the program itself may have opened since. */
const OPEN_FILES_SLACK = 40;

function page(key: string): string {
  const since = new Date(Date.now() - 3_600_000).toISOString();
  return rawRequest(`GET ${PAGE}${since}`, bearer(key));
}

const KINDS: readonly Kind[] = [
  { name: 'silent', first: () => '', statuses: [408] },
  { name: 'slow head', first: () => HEAD, trickle: 'X: y\r\n', statuses: [408] },
  { name: 'half a line', first: () => 'GET /v1/he', statuses: [408] },
  {
    name: 'slow body',
    first: ({ key }) =>
      `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\nclient_secret=${key}`,
    trickle: 'x',
    statuses: [400],
  },
  { name: 'idle after an answer', first: ({ key }) => page(key), statuses: [200] },
  {
    name: 'cut in the head',
    first: ({ key }, prng) => page(key).slice(0, 1 + prng.below(page(key).length - 4)),
    disconnects: 'at once',
  },
  {
    name: 'cut in the answer',
    first: ({ key }) => page(key).repeat(PIPELINED),
    disconnects: 'in the answer',
  },
];

const NEVER_READS: Kind = {
  name: 'never reads',
  first: ({ largePhoto }) => rawRequest(`GET ${largePhoto}`).repeat(PIPELINED),
  neverReads: true,
};

/** Few never read: the system buffers megabytes for each. */
const ROUND: readonly Kind[] = [...Array(5).fill(KINDS).flat(), NEVER_READS];

/** Runs them all at once, and counts how many of each kind were disconnected as required. */
export async function runClients(target: Target, options: PartOptions): Promise<void> {
  const { tally } = options;
  const { failures } = tally;
  const { appliance, admin, secrets } = target;
  // At least one of every kind.
  const count = shareOf(options, CLIENTS, ROUND.length);
  const prng = seededPrng(options.seed, 'clients');
  const { files: filesBefore } = await readProcess(admin);
  const open: { readonly kind: Kind; readonly client: Client }[] = [];
  const trickling = setInterval(() => {
    for (const { kind, client } of open)
      if (kind.trickle !== undefined && client.socket.writable) client.socket.write(kind.trickle);
  }, TRICKLE_EVERY_MS);
  for (let at = 0; at < count; at += 1) {
    const kind = ROUND[at % ROUND.length] ?? NEVER_READS;
    const client = openClient(target, kind, kind.first(target, prng));
    open.push({ kind, client });
    // Connecting all at once would delay requests, and the program would disconnect these clients as too slow.
    if (at % OPENED_TOGETHER === 0)
      await Promise.race([once(client.socket, 'connect'), once(client.socket, 'close')]);
  }
  const endMs = performance.now() + ALL_CLOSED_TIMEOUT_MS;
  while (open.some(({ client }) => !client.isOver) && performance.now() < endMs) {
    const { status } = await appliance.get('/v1/me');
    if (status === 200) tally.count('good answers meanwhile');
    else failures.push(`a good client got ${status} beside ${count} bad ones`);
    await wait(100);
  }
  clearInterval(trickling);
  for (const { kind, client } of open) {
    secrets.search(`the responses to a client of the kind "${kind.name}"`, client.received);
    const why = client.isOver ? errorIn(kind, client) : 'is still connected';
    client.socket.destroy();
    if (why === null) tally.count(kind.name);
    else failures.push(`a client of the kind "${kind.name}" ${why}`);
  }
  let files = 0;
  await until('their files to be closed', async () => {
    ({ files } = await readProcess(admin));
    return files <= filesBefore + OPEN_FILES_SLACK;
  }).catch((error) => failures.push(`${files} files are open, ${filesBefore} were open before: ${error}`));
}

function openClient(
  { facts, stalledTimeoutMs }: Target,
  { neverReads, disconnects }: Kind,
  bytes: string,
): Client {
  const { hostname, port } = new URL(`http://${facts.host}`);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  const client: Client = { socket, received: '', isOver: false };
  // Node emits no 'close' for a connection that the peer had already reset.
  const cut = () => {
    client.isOver = true;
    socket.resetAndDestroy();
  };
  if (bytes !== '') socket.write(bytes, disconnects === 'at once' ? cut : undefined);
  if (neverReads) {
    const probe = () => {
      for (let at = 0; at < PROBES; at += 1) setTimeout(() => socket.write('x'), at * BETWEEN_PROBES_MS);
    };
    const probing = setInterval(probe, stalledTimeoutMs);
    socket.once('close', () => clearInterval(probing));
  } else {
    socket.setEncoding('latin1').on('data', (piece: string) => {
      client.received += piece;
      if (disconnects === 'in the answer') cut();
    });
  }
  socket.on('end', () => socket.end());
  socket.on('error', () => {});
  socket.on('close', () => {
    client.isOver = true;
  });
  return client;
}

/** @returns null if the client was disconnected as required */
function errorIn({ statuses = [], disconnects }: Kind, { received }: Client): string | null {
  if (disconnects === 'in the answer') return received === '' ? 'was disconnected before the response' : null;
  try {
    const responses = parseResponses(Buffer.from(received, 'latin1'), Array(PIPELINED).fill('GET'));
    if (!responses.every(({ headers }) => headers.has('x-request-id'))) return 'got no X-Request-Id';
    const got = responses.map(({ status }) => status);
    return `${got}` === `${statuses}` ? null : `got ${got}, not ${statuses}`;
  } catch (error) {
    return `got a malformed response: ${error instanceof Error ? error.message : error}`;
  }
}
