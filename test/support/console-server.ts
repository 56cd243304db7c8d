/** Serves the console's app with prepared responses and the program's headers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Changes } from '../../src/admin/console/api.ts';
import { consoleFiles } from '../../src/packed.ts';
import { listen } from './free-port.ts';

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

export type ConsoleServer = Awaited<ReturnType<typeof startConsoleServer>>;

/** @param responses by path; a test may change them */
export async function startConsoleServer(responses: Record<string, unknown>) {
  const changes = { overview: 0, windows: 0, detections: 0, customers: 0, jobs: 0 };
  let asked = 0;
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
    } else if (pathname === '/console/changes') {
      asked += 1;
      sendJson({ status: isBroken ? 503 : 200, body: changes });
    } else if (responses[pathname] === undefined)
      sendJson({ status: 404, body: { title: 'Not Found', detail: `there is no ${pathname}` } });
    else sendJson({ status: 200, body: responses[pathname] });
  };
  const server = createServer((request, response) => void respond(request, response));
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    responses,
    /** The response to POST, by path; by default success. */
    results,
    posted,
    /** Says that the views of a topic have changed. */
    change(topic: keyof Changes): void {
      changes[topic] += 1;
    },
    /** How often a page asked what has changed. */
    asked: () => asked,
    /** `true` refuses to say what has changed, until `false`. */
    refuseChanges(broken: boolean): void {
      isBroken = broken;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
