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
import { oneAtATime } from '../one-at-a-time.ts';
import { adminDocument } from '../operations/openapi.ts';
import type { Status } from '../operations/status.ts';
import { consoleFiles } from '../packed.ts';
import { Refused } from '../refused.ts';
import { deriveKey } from '../seal.ts';
import { CONSOLE, type ConsoleOptions, createConsole } from './console/console.ts';
import { certificateNames, isHostAccepted, ownNames } from './host-header.ts';
import type { GaugeSources, Metrics } from './metrics.ts';
import { OPERATIONS_PATH, refusedOf, send } from './operation-requests.ts';
import type { Told } from './thread-messages.ts';

export interface AdminOptions
  extends ConsoleOptions,
    Pick<GaugeSources, 'monitor' | 'dailyRows' | 'keyUses' | 'folder'> {
  readonly config: Config;
  readonly secret: Buffer;
  readonly conditions: Conditions;
  readonly server: Pick<GaugeSources, 'connections' | 'certificateExpiresMs'>;
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
const OTHER_HOST =
  'Ask for this by address, by a name without dots, by the name in [admin] host, or by one in its certificate.';
const FILE_TYPES: ReadonlyMap<string, string> = new Map([
  ['index.html', 'text/html'],
  ['app.js', 'text/javascript'],
  ['style.css', 'text/css'],
]);

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
  const console = createConsole(options);
  // The signature in an address is the credential, as in the API.
  const photos = { folder: config.photos.folder, key: deriveKey(secret, 'photo') };
  // One at a time, whoever asks: without a session, nobody may fill the queue that commands wait in.
  const status = oneAtATime(async (): Promise<Status | null> => {
    const asking = { path: 'status', given: {}, way: 'api', by: { actor: 'metrics' } } as const;
    const { status, body } = await operations.run(asking);
    return status === 200 ? JSON.parse(body).value : null;
  });
  const sources: GaugeSources = { ...options, ...options.server, status, now };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<Told | null> {
    const { method, headers, url = '' } = request;
    const names = [...own, ...certificateNames(listener.pair()?.subjectAltName)];
    if (!isHostAccepted(headers.host, names)) return plain(421, OTHER_HOST);
    const [path = ''] = url.split('?', 1);
    if (path.startsWith(CONSOLE) || path.startsWith(OPERATIONS_PATH))
      return console.answer(request, response);
    if (path.startsWith(PHOTOS)) return sendPhoto(request, response, photos);
    const page =
      path === '/metrics' ? textOf(200, metrics.contentType, await metrics.text(sources)) : pageAt(path);
    if (page === null) return plain(404, 'There is nothing here. See /');
    if (method === 'GET' || method === 'HEAD') return page;
    return plain(405, 'Only GET and HEAD.', { Allow: 'GET, HEAD' });
  }

  listener.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {});
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    // The console calculates ages with it, also in a lab.
    response.setHeader('Date', new Date(now()).toUTCString());
    listener.connections.inTurn(response, async () => {
      const told = await answer(request, response).catch((error: unknown) => {
        log.error({ err: error }, 'a page of the administration failed');
        return plain(500, 'This page failed; see the log.');
      });
      send(response, told);
    });
  });
  const url = await listener.listen();
  log.info({ url }, 'administration listening');
  return {
    url,
    async close() {
      console.close();
      await listener.close(0);
    },
  };
}

/** @returns the answer to send; null if it was sent */
async function sendPhoto(request: IncomingMessage, response: ServerResponse, photos: PhotoSources) {
  const asked = { ...splitTarget(request.url ?? ''), request };
  const found = request.method === 'GET' ? await answerPhoto(photos, asked).catch(refusedOf) : null;
  if (found === null || found instanceof Refused) return plain(404, 'There is no photo.');
  const { status, body, contentType = '', headers = [] } = found;
  const head = ['Cache-Control', CACHE_CONTROL, ...headers];
  if (typeof body !== 'object' || !('handle' in body)) {
    response.writeHead(status, head).end();
    return null;
  }
  response.writeHead(status, [...head, 'Content-Type', contentType, 'Content-Length', `${body.bytes}`]);
  await sendFile(response, body);
  return null;
}

function pageAt(path: string): Told | null {
  if (path === '/openapi-admin.json')
    return textOf(200, 'application/json', `${JSON.stringify(adminDocument(), null, 2)}\n`);
  const name = path.slice(1) || 'index.html';
  const type = FILE_TYPES.get(name);
  const file = type === undefined ? undefined : consoleFiles()[name];
  return file === undefined ? null : textOf(200, `${type}; charset=utf-8`, file);
}

function textOf(status: number, type: string, body: string, headers: Told['headers'] = {}): Told {
  return { status, body, headers: { ...headers, 'Content-Type': type } };
}

const plain = (status: number, text: string, headers: Told['headers'] = {}): Told =>
  textOf(status, 'text/plain; charset=utf-8', `${text}\n`, headers);
