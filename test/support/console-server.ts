/** Serves the console's app with prepared responses and the program's headers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { consoleFiles } from '../../src/packed.ts';

/** A page may load only from this server. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };

/** What an operation answers, see operations/problem.ts. */
export const OUTCOME = { value: null, done: null, next: [], warning: null, failed: false };

export interface Posted {
  readonly path: string;
  readonly body: unknown;
}

export interface JsonResponse {
  readonly status: number;
  readonly body: unknown;
}

export interface ConsoleServer {
  readonly url: string;
  /** By path; a test may change it. */
  readonly responses: Record<string, unknown>;
  /** The response to POST, by path; by default success. */
  readonly results: Record<string, JsonResponse>;
  readonly posted: Posted[];
  /** Sends an event to every page. */
  sendEvent(event: string): void;
  /** How many event streams are open. */
  streams(): number;
  /** `true` ends the event streams and refuses new ones, until `false`. */
  breakEvents(isBroken: boolean): void;
  close(): Promise<void>;
}

export async function startConsoleServer(responses: Record<string, unknown>): Promise<ConsoleServer> {
  const streams = new Set<ServerResponse>();
  const posted: Posted[] = [];
  const results: Record<string, JsonResponse> = {};
  let isBroken = false;
  const files = consoleFiles();
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const file = files[pathname === '/' ? 'index.html' : pathname.slice(1)];
    const send = (status: number, contentType: string, body: string) => {
      response.writeHead(status, { 'Content-Type': contentType, 'Content-Security-Policy': POLICY });
      response.end(body);
    };
    const sendJson = ({ status, body }: JsonResponse) =>
      send(status, 'application/json', JSON.stringify(body));
    if (file !== undefined) send(200, TYPES[pathname.split('.')[1] ?? 'html'] ?? '', file);
    else if (request.method === 'POST') {
      posted.push({ path: pathname, body: JSON.parse(await text(request)) });
      sendJson(results[pathname] ?? { status: 200, body: { ...OUTCOME, done: 'It was done.' } });
    } else if (pathname === '/console/events') {
      if (isBroken) return sendJson({ status: 503, body: { detail: 'too many consoles' } });
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Security-Policy': POLICY });
      response.write(':\n\n');
      streams.add(response);
      response.on('close', () => streams.delete(response));
    } else if (responses[pathname] === undefined)
      sendJson({ status: 404, body: { title: 'Not Found', detail: `there is no ${pathname}` } });
    else sendJson({ status: 200, body: responses[pathname] });
  };
  const server = createServer((request, response) => void respond(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    responses,
    results,
    posted,
    sendEvent: (event) => {
      for (const stream of streams) stream.write(`event: ${event}\ndata: {}\n\n`);
    },
    streams: () => streams.size,
    breakEvents: (broken) => {
      isBroken = broken;
      if (broken) for (const stream of streams) stream.end();
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
