/**
 * Clients that are silent, send or read too slowly, or close the connection, thousands of them at once. Each must be
 * disconnected in the way that fits its fault, while a good client is answered.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Prng } from '../../../src/generate/prng.ts';
import { parseResponses } from '../../support/raw-http.ts';
import { readMetrics } from '../metrics.ts';
import type { Secrets } from './secrets.ts';
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
  /** Whether the client never reads. */
  readonly isDeaf?: boolean;
  /** Whether and when it closes the connection: after the response has begun, or when the bytes are sent. */
  readonly cuts?: 'at once' | 'in the answer';
  /** Statuses that it gets before the program closes the connection; null: any, the client closes it. */
  readonly statuses: readonly number[] | null;
}

const HEAD = 'GET /v1/health HTTP/1.1\r\nHost: x\r\n';
const PAGE = '/v1/detections/changes?limit=1000&since=';
/** Pipelined requests. */
const PIPELINED = 3;
/** Slower than the program accepts. */
const TRICKLE_EVERY_MS = 2000;
/**
 * A client that never reads does not notice that its connection ended. Then it sends a byte, which is refused, and the
 * next write fails. Before that it is silent for longer than the program waits.
 */
const PROBES = 2;
const BETWEEN_PROBES_MS = 1000;
const OPENED_TOGETHER = 20;
/** Open ones are counted while others are being opened: on a busy machine the first are closed by then. */
const COUNTED_EVERY = 500;
/** Much longer than any timeout of the program. */
const GIVEN_UP_MS = 900_000;

function page(key: string): string {
  const since = new Date(Date.now() - 3_600_000).toISOString();
  return `GET ${PAGE}${since} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
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
    statuses: [408],
  },
  { name: 'idle after an answer', first: ({ key }) => page(key), statuses: [200] },
  {
    name: 'cut in the head',
    first: ({ key }, prng) => page(key).slice(0, 1 + prng.below(page(key).length - 4)),
    cuts: 'at once',
    statuses: null,
  },
  {
    name: 'cut in the answer',
    first: ({ key }) => page(key).repeat(PIPELINED),
    cuts: 'in the answer',
    statuses: null,
  },
];

const DEAF: Kind = {
  name: 'never reads',
  first: ({ largePhoto }) => `GET ${largePhoto} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(PIPELINED),
  isDeaf: true,
  statuses: null,
};

/** Few never read: the system buffers megabytes for each. */
const ROUND: readonly Kind[] = [...Array.from({ length: 5 }, () => KINDS).flat(), DEAF];
/** So many include every kind. */
export const CLIENTS_MIN = ROUND.length;

export interface ClientsOutcome {
  /** How many of each kind were disconnected as required. */
  readonly figures: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
}

/** @param count clients, all at once */
export async function runClients(
  target: Target,
  { count, prng, secrets }: { count: number; prng: Prng; secrets: Secrets },
): Promise<ClientsOutcome> {
  const { appliance, admin } = target;
  const figures: Record<string, number> = {};
  const failures: string[] = [];
  const filesBefore = await openFiles(admin);
  let heldMax = 0;
  const open: { readonly kind: Kind; readonly client: Client }[] = [];
  const trickling = setInterval(() => {
    for (const { kind, client } of open)
      if (kind.trickle !== undefined && client.socket.writable) client.socket.write(kind.trickle);
  }, TRICKLE_EVERY_MS);
  for (let at = 0; at < count; at += 1) {
    const kind = ROUND[at % ROUND.length] ?? DEAF;
    const client = openClient(target, kind, kind.first(target, prng));
    open.push({ kind, client });
    // A client that waits for its turn here would be late with its request, and be disconnected for that.
    if (at % OPENED_TOGETHER === 0)
      await Promise.race([once(client.socket, 'connect'), once(client.socket, 'close')]);
    if (at % COUNTED_EVERY === 0) heldMax = Math.max(heldMax, (await openFiles(admin)) - filesBefore);
  }
  let goodAnswers = 0;
  const endMs = performance.now() + GIVEN_UP_MS;
  while (open.some(({ client }) => !client.isOver) && performance.now() < endMs) {
    const { status } = await appliance.get('/v1/me');
    if (status === 200) goodAnswers += 1;
    else failures.push(`a good client got ${status} among ${count} bad ones`);
    heldMax = Math.max(heldMax, (await openFiles(admin)) - filesBefore);
    await wait(100);
  }
  clearInterval(trickling);
  for (const { kind, client } of open) {
    secrets.search(`the answers to a client that was ${kind.name}`, client.received);
    const why = client.isOver ? wrongIn(kind, client) : 'is still connected';
    client.socket.destroy();
    if (why === null) figures[kind.name] = (figures[kind.name] ?? 0) + 1;
    else failures.push(`a client that was "${kind.name}" ${why}`);
  }
  for (const { name } of ROUND.slice(-KINDS.length - 1))
    if (figures[name] === undefined) failures.push(`no client was "${name}"`);
  failures.push(...(await notGivenBack(admin, filesBefore)));
  return {
    figures: { ...figures, 'connections held at once': heldMax, 'good answers meanwhile': goodAnswers },
    failures,
  };
}

function openClient({ facts, givesUpMs }: Target, { isDeaf, cuts }: Kind, bytes: string): Client {
  const { hostname, port } = new URL(`http://${facts.host}`);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  const client: Client = { socket, received: '', isOver: false };
  // Node emits no 'close' for a connection that the peer had already reset.
  const cut = () => {
    client.isOver = true;
    socket.resetAndDestroy();
  };
  if (bytes !== '') {
    socket.write(bytes, () => {
      if (cuts === 'at once') cut();
    });
  }
  if (isDeaf) {
    const probe = () => {
      for (let at = 0; at < PROBES; at += 1) setTimeout(() => socket.write('x'), at * BETWEEN_PROBES_MS);
    };
    const probing = setInterval(probe, givesUpMs);
    socket.once('close', () => clearInterval(probing));
  } else {
    socket.setEncoding('latin1').on('data', (piece: string) => {
      client.received += piece;
      if (cuts === 'in the answer') cut();
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
function wrongIn({ statuses, cuts }: Kind, { received }: Client): string | null {
  if (cuts === 'in the answer') return received === '' ? 'was cut before an answer' : null;
  if (statuses === null) return received === '' ? null : `got ${received.slice(0, 200)}`;
  try {
    const answers = parseResponses(Buffer.from(received, 'latin1'), Array(PIPELINED).fill('GET'));
    const got = answers.map(({ status }) => status);
    return `${got}` === `${statuses}` ? null : `got ${got}, not ${statuses}`;
  } catch (error) {
    return `got no well-formed answer: ${error instanceof Error ? error.message : error}`;
  }
}

/** Files that the program's own threads and connections may open meanwhile. */
const OPEN_FILES_SLACK = 40;
const GIVEN_BACK_MS = 300_000;

async function notGivenBack(admin: string, filesBefore: number): Promise<string[]> {
  const endMs = performance.now() + GIVEN_BACK_MS;
  for (;;) {
    const files = await openFiles(admin);
    if (files <= filesBefore + OPEN_FILES_SLACK) return [];
    if (performance.now() > endMs)
      return [`${files} files are open after the clients have gone, ${filesBefore} were before them`];
    await wait(200);
  }
}

async function openFiles(admin: string): Promise<number> {
  const [count = 0] = await readMetrics(admin, ['process_open_fds']);
  return count;
}
