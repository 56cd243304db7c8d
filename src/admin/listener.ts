/**
 * The administration's own small server, apart from the API's: neither its limits nor its load touch the other. It
 * only shows: GET and HEAD, nothing that changes anything, and never a secret.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { Settings } from '../config/schema.ts';
import type { Logger } from '../log.ts';
import { Refused, reasonOf } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { isHostTaken, ownNames } from './host.ts';
import { type Content, createPages, type PageSources } from './pages.ts';

export interface AdminOptions extends PageSources {
  readonly settings: Settings['admin'];
  readonly log: Logger;
}

export interface Admin {
  readonly url: string;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 50;
const TIMEOUT_MS = 10 * SECOND_MS;
const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};
const PLAIN = 'text/plain; charset=utf-8';

/** @throws Refused `failed` when it cannot listen */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { settings, log } = options;
  const names = ownNames(settings.host, hostname(), process.env);
  const find = createPages(options);
  const server = createServer(
    { headersTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS },
    (request, response) => {
      response.on('error', () => {});
      answer(request, response, names, find).catch((error: unknown) => {
        log.error({ err: error }, 'a page of the administration failed');
        send(request, response, 500, { contentType: PLAIN, body: 'This page failed; see the log.\n' });
      });
    },
  );
  server.setTimeout(TIMEOUT_MS);
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, settings);
  server.on('error', (error) => log.error({ err: error }, 'http server'));
  options.metrics.watch(options);
  const url = urlOf(server);
  log.info({ url }, 'administration listening');
  if (!isLoopback(server)) {
    log.warn(
      { url },
      'the administration can be reached from other machines: whoever reaches it can read it',
    );
  }
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  names: readonly string[],
  find: (path: string) => Promise<Content | null>,
): Promise<void> {
  const refuse = (status: number, text: string) =>
    send(request, response, status, { contentType: PLAIN, body: `${text}\n` });
  if (!isHostTaken(request.headers.host, names)) {
    refuse(421, 'Ask for this by address, by a name without dots, or by the name in [admin] host.');
    return;
  }
  const [path = ''] = (request.url ?? '').split('?', 1);
  const content = await find(path);
  if (content === null) refuse(404, 'There is nothing here. See /');
  else if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    refuse(405, 'Only GET and HEAD.');
  } else send(request, response, 200, content);
}

function send(request: IncomingMessage, response: ServerResponse, status: number, content: Content): void {
  if (response.headersSent || response.destroyed) return;
  const { contentType, body } = content;
  const length = { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(status, { ...HEADERS, ...length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function listen(server: Server, { host, port }: Settings['admin']): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const detail = `the administration cannot listen on ${host}, port ${port}: ${reasonOf(error)}. Choose another with [admin] host and port, or port 0 to leave it off.`;
      reject(new Refused('failed', detail, { cause: error }));
    });
    server.listen(port, host, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

function addressOf(server: Server) {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port');
  return address;
}

function urlOf(server: Server): string {
  const { address, family, port } = addressOf(server);
  const shown = family === 'IPv6' ? `[${address}]` : address;
  return `http://${shown}:${port}`;
}

function isLoopback(server: Server): boolean {
  const { address } = addressOf(server);
  return address === '::1' || address.startsWith('127.');
}
