/**
 * The server of the administration port. It is separate from the API's, so neither's limits affect the other. Metrics and
 * OpenAPI need no session; the console does (console/console.ts).
 */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { hostname } from 'node:os';
import type { Settings } from '../config/schema.ts';
import { listeningUrl } from '../http/listener.ts';
import { openTls, secureContext, type TlsPair } from '../http/tls-pair.ts';
import { type TlsRenewalOptions, watchTlsPair } from '../http/tls-renewal.ts';
import type { Logger } from '../log.ts';
import { Refused, reasonOf } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { CONSOLE, Console, type ConsoleOptions } from './console/console.ts';
import type { GaugeSources } from './gauges.ts';
import { certificateNames, isHostAccepted, ownNames } from './host-header.ts';
import type { Metrics } from './metrics.ts';
import { type Content, createPages } from './pages.ts';

export interface AdminOptions extends GaugeSources {
  readonly metrics: Metrics;
  readonly settings: Settings['admin'];
  /** Whether it has a certificate other than the API's. */
  readonly hasOwnCertificate: boolean;
  readonly console: ConsoleOptions;
  readonly conditions: TlsRenewalOptions['conditions'];
  readonly log: Logger;
}

export interface Admin {
  readonly url: string;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 100;
const TIMEOUT_MS = 10 * SECOND_MS;
const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};
const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
const PLAIN = 'text/plain; charset=utf-8';

/** @throws Refused `failed` when it cannot listen, `configuration` when not with the certificate that is set */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { settings, log, now, conditions } = options;
  const tls = await openTls(settings, options.hasOwnCertificate ? { section: 'admin' } : {});
  // Node's defaults would let a silent client hold a connection for two minutes.
  const timeouts = { headersTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS, handshakeTimeout: TIMEOUT_MS };
  const secured = tls === null ? null : createTlsServer({ ...timeouts, ...secureContext(tls.pair) });
  const server: Server = secured ?? createServer(timeouts);
  const own = ownNames(settings.host, hostname(), process.env);
  let names = [...own, ...(tls === null ? [] : namesOf(tls.pair))];
  const answers: Answers = {
    names: () => names,
    find: createPages(options.metrics),
    console: new Console(options.console),
  };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {});
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    // The console calculates ages with it, also in a lab.
    response.setHeader('Date', new Date(now()).toUTCString());
    answer(request, response, answers).catch((error: unknown) => {
      log.error({ err: error }, 'a page of the administration failed');
      send(request, response, 500, { contentType: PLAIN, body: 'This page failed; see the log.\n' });
    });
  });
  server.setTimeout(TIMEOUT_MS);
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, settings);
  server.on('error', (error) => log.error({ err: error }, 'http server'));
  const onRenewed = (renewed: TlsPair) => {
    names = [...own, ...namesOf(renewed)];
    secured?.setSecureContext(secureContext(renewed));
  };
  const renewal = tls === null ? null : watchTlsPair({ ...tls, onRenewed, conditions, log, now });
  options.metrics.addGauges(options);
  const url = listeningUrl(server, tls === null ? 'http' : 'https');
  log.info({ url }, 'administration listening');
  return {
    url,
    async close() {
      renewal?.close();
      await answers.console.close();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function namesOf({ certificate }: TlsPair): string[] {
  return certificateNames(new X509Certificate(certificate).subjectAltName);
}

interface Answers {
  readonly names: () => readonly string[];
  readonly find: (path: string) => Promise<Content | null>;
  readonly console: Console;
}

async function answer(request: IncomingMessage, response: ServerResponse, answers: Answers): Promise<void> {
  const refuse = (status: number, text: string) =>
    send(request, response, status, { contentType: PLAIN, body: `${text}\n` });
  if (!isHostAccepted(request.headers.host, answers.names())) {
    refuse(
      421,
      'Ask for this by address, by a name without dots, by the name in [admin] host, or by one in its certificate.',
    );
    return;
  }
  const [path = ''] = (request.url ?? '').split('?', 1);
  if (path.startsWith(CONSOLE)) {
    const reply = await answers.console.answer(request, response);
    if (reply === null) return;
    const { status, body, headers = {} } = reply;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    send(request, response, status, { contentType: status === 200 ? JSON_TYPE : PROBLEM_TYPE, body });
    return;
  }
  const [manual, topic = ''] = /^\/manual(?:\/([a-z-]+))?$/.exec(path) ?? [];
  if (manual !== undefined) {
    response.writeHead(302, { Location: `/#/manual/${topic}` }).end();
    return;
  }
  const content = await answers.find(path);
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
  response.writeHead(status, length);
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function listen(server: Server, { host, port }: Settings['admin']): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    const detail = `the administration cannot listen on ${host}, port ${port}: ${reasonOf(error)}. Choose another with [admin] host and port, or port 0 to leave it off.`;
    throw new Refused('failed', detail, { cause: error });
  }
}
