/**
 * The server of the administration port. It has the API's limits, but counts for itself: whoever uses up the connections
 * of one does not shut anybody out of the other. Metrics and OpenAPI need no session; the console does
 * (console/console.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { now } from '../clock.ts';
import type { Config } from '../config/load.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import { answerPhoto, CACHE_CONTROL, type PhotoSources } from '../http/endpoints/photo.ts';
import { openListener } from '../http/listener.ts';
import { sendFile } from '../http/reply.ts';
import { splitTarget } from '../http/routes.ts';
import type { Logger } from '../logger.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { adminDocument } from '../operations/openapi.ts';
import type { Status } from '../operations/status.ts';
import { consoleFiles } from '../packed.ts';
import { Refused } from '../refused.ts';
import { deriveKey } from '../seal.ts';
import { type Console, type ConsoleOptions, createConsole } from './console/console.ts';
import { certificateNames, isHostAccepted, ownNames } from './host-header.ts';
import type { GaugeSources, Metrics } from './metrics.ts';
import { refusedOf } from './operation-requests.ts';
import type { Operations } from './thread-client.ts';

export interface AdminOptions extends Pick<GaugeSources, 'monitor' | 'dailyRows' | 'keyUses' | 'folder'> {
  readonly config: Config;
  readonly secret: Buffer;
  readonly conditions: Conditions;
  readonly operations: Operations;
  readonly server: Pick<GaugeSources, 'connections' | 'certificateExpiresMs'>;
  readonly lab: ConsoleOptions['lab'];
  readonly log: Logger;
}

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
const PHOTOS = '/photos/';
const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
const PLAIN = 'text/plain; charset=utf-8';
const OTHER_HOST =
  'Ask for this by address, by a name without dots, by the name in [admin] host, or by one in its certificate.';

/** @throws Refused `failed` when it cannot listen, `configuration` when not with the certificate that is set */
export async function startAdmin(metrics: Metrics, options: AdminOptions) {
  const { config, secret, operations, log } = options;
  const { admin, server } = config;
  const own = ownNames(admin.host, hostname());
  const listener = await openListener({
    ...options,
    now,
    settings: { ...admin, ...(admin.tls_certificate !== server.tls_certificate && { section: 'admin' }) },
    limits: server,
    subject: 'the administration ',
    advice: 'Choose another with [admin] host and port, or port 0 to leave it off.',
  });
  const names = () => [...own, ...certificateNames(listener.pair()?.subjectAltName)];
  // The signature in an address is the credential, as in the API.
  const photos = { folder: config.photos.folder, key: deriveKey(secret, 'photo') };
  const answers = { names, metrics, console: createConsole(options), photos };
  listener.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {});
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    // The console calculates ages with it, also in a lab.
    response.setHeader('Date', new Date(now()).toUTCString());
    listener.connections.inTurn(request, response, () =>
      answer(request, response, answers).catch((error: unknown) => {
        log.error({ err: error }, 'a page of the administration failed');
        send(request, response, plain(500, 'This page failed; see the log.'));
      }),
    );
  });
  const url = await listener.listen();
  // One at a time, whoever asks: without a session, nobody may fill the queue that commands wait in.
  const status = oneAtATime(() => readStatus(operations));
  metrics.addGauges({ ...options, ...options.server, status, now });
  log.info({ url }, 'administration listening');
  return {
    url,
    async close() {
      answers.console.close();
      await listener.close(0);
    },
  };
}

/** @returns null while the operations thread cannot answer: whoever reads the metrics asks again */
async function readStatus(operations: Operations): Promise<Status | null> {
  const asking = { path: 'status', given: {}, way: 'api', by: { actor: 'metrics' } } as const;
  const { status, body } = await operations.run(asking);
  return status === 200 ? JSON.parse(body).value : null;
}

interface Answers {
  readonly names: () => readonly string[];
  readonly metrics: Metrics;
  readonly console: Console;
  readonly photos: PhotoSources;
}

async function answer(request: IncomingMessage, response: ServerResponse, answers: Answers): Promise<void> {
  const reply = (content: Content) => send(request, response, content);
  if (!isHostAccepted(request.headers.host, answers.names())) return reply(plain(421, OTHER_HOST));
  const [path = ''] = (request.url ?? '').split('?', 1);
  if (answers.console.isFor(path)) {
    const told = await answers.console.answer(request, response);
    if (told === null) return;
    return reply({ ...told, contentType: told.status < 300 ? JSON_TYPE : PROBLEM_TYPE });
  }
  if (path.startsWith(PHOTOS)) return sendPhoto(request, response, answers.photos);
  const page = await pageAt(path, answers.metrics);
  if (page === null) return reply(plain(404, 'There is nothing here. See /'));
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return reply(plain(405, 'Only GET and HEAD.', { Allow: 'GET, HEAD' }));
  reply({ status: 200, ...page });
}

async function sendPhoto(request: IncomingMessage, response: ServerResponse, photos: PhotoSources) {
  const asked = { ...splitTarget(request.url ?? ''), request };
  const found = request.method === 'GET' ? await answerPhoto(photos, asked).catch(refusedOf) : null;
  if (found === null || found instanceof Refused)
    return send(request, response, plain(404, 'There is no photo.'));
  const { status, body, contentType = PLAIN, headers = [] } = found;
  const head = ['Cache-Control', CACHE_CONTROL, ...headers];
  if (typeof body !== 'object' || !('handle' in body)) return void response.writeHead(status, head).end();
  response.writeHead(status, [...head, 'Content-Type', contentType, 'Content-Length', `${body.bytes}`]);
  await sendFile(response, body);
}

interface Content {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function plain(status: number, text: string, headers: Content['headers'] = {}): Content {
  return { status, contentType: PLAIN, body: `${text}\n`, headers };
}

const FILES: ReadonlyMap<string, readonly [name: string, type: string]> = new Map([
  ['/', ['index.html', 'text/html']],
  ['/app.js', ['app.js', 'text/javascript']],
  ['/style.css', ['style.css', 'text/css']],
]);

async function pageAt(path: string, metrics: Metrics): Promise<Omit<Content, 'status'> | null> {
  if (path === '/metrics') return { contentType: metrics.contentType, body: await metrics.text() };
  if (path === '/openapi-admin.json')
    return { contentType: 'application/json', body: `${JSON.stringify(adminDocument(), null, 2)}\n` };
  const [name, type] = FILES.get(path) ?? [];
  if (name === undefined) return null;
  const body = consoleFiles()[name];
  if (body === undefined) throw new Error(`the program was bundled without ${name} of the console`);
  return { contentType: `${type}; charset=utf-8`, body };
}

function send(request: IncomingMessage, response: ServerResponse, content: Content): void {
  if (response.headersSent || response.destroyed) return;
  const { status, contentType, body, headers } = content;
  const length = Buffer.byteLength(body);
  response.writeHead(status, { ...headers, 'Content-Type': contentType, 'Content-Length': length });
  response.end(request.method === 'HEAD' ? undefined : body);
}
