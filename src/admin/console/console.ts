/**
 * The console's requests on the administration port, checked on the main thread: origin, session, permission. Views and
 * operations then run on the operations thread (admin/thread.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { actorText } from '../../auth/actor.ts';
import { NotReadable, type OpenSession, type Sessions } from '../../auth/console-sessions.ts';
import { type Body, readBody } from '../../http/body.ts';
import { createStrangerLog, type StrangerLog } from '../../http/line-limit.ts';
import type { Logger } from '../../logger.ts';
import { formatMs, SECOND_MS } from '../../time.ts';
import { VERSION } from '../../version.ts';
import { isForeign } from '../host-header.ts';
import { type Answer, answerOperation, OPERATIONS_PATH } from '../operation-requests.ts';
import type { Operations } from '../thread-client.ts';
import { problem } from '../thread-messages.ts';
import type { Session, SessionBegun } from './api.ts';
import { createEventStreams, type EventStreams } from './event-streams.ts';

export const CONSOLE = '/console/';

export interface ConsoleOptions {
  readonly operations: Operations;
  readonly sessions: Sessions;
  /** The answer to `GET lab`, a LabState; null unless it is a lab. */
  readonly lab: (() => object) | null;
  readonly log: Logger;
}

/** Of the machine, also in a lab: other processes make links, and a session must survive a clock that is moved. */
const now = Date.now;
const BODY_BYTES_MAX = 64 * 1024;
const BODY_MS = 10 * SECOND_MS;
const STREAM_HEAD = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };
const NO_SESSION = 'There is no session, or it has ended. Get a link with: wirewatch console';
const BAD_LINK =
  'This link was used already, has expired, or was made before the last start or for another installation. Get another with: wirewatch console';

export class Console {
  readonly #options: ConsoleOptions;
  readonly #streams: EventStreams;
  readonly #strangers: StrangerLog;

  constructor(options: ConsoleOptions) {
    const { operations, log } = options;
    this.#options = options;
    this.#strangers = createStrangerLog(log);
    this.#streams = createEventStreams((isUsed) => operations.watch(isUsed ? this.#streams.send : null));
  }

  close(): void {
    this.#streams.close();
    this.#strangers.close();
  }

  isFor(path: string): boolean {
    return path.startsWith(CONSOLE) || path.startsWith(OPERATIONS_PATH);
  }

  /** @returns null for an answer that goes on: an event stream, or an operation that is answered in lines */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<Answer | null> {
    try {
      const [target = '', query = ''] = (request.url ?? '').split('?', 2);
      if (request.method !== 'POST' && request.method !== 'GET')
        return {
          ...problem(405, 'Only GET and POST.', 'method_not_allowed'),
          headers: { Allow: 'GET, POST' },
        };
      if (isForeign(request)) return problem(403, 'A page of another origin cannot ask this.', 'forbidden');
      if (target.startsWith(OPERATIONS_PATH)) return await this.#operate(request, response);
      const path = target.slice(CONSOLE.length);
      if (request.method === 'POST') return await this.#post(path, request);
      return await this.#get(path, query, request, response);
    } catch (error) {
      if (!(error instanceof NotReadable)) throw error;
      return problem(
        503,
        'Sessions cannot be checked: access.db cannot be read. See the alerts.',
        'unavailable',
      );
    }
  }

  async #operate(request: IncomingMessage, response: ServerResponse): Promise<Answer | null> {
    const { operations, log } = this.#options;
    const session = this.#sessionOf(request);
    if (session === null) return problem(401, NO_SESSION, 'unauthorized');
    // Only browsers say where a request comes from.
    const way = request.headers['sec-fetch-site'] === undefined ? 'api' : 'console';
    const { by, read_only } = session;
    log.info({ way, path: request.url, ...by }, 'an operation was asked for');
    return answerOperation(request, response, operations, { way, by, mayAct: !read_only });
  }

  async #get(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer | null> {
    const { lab, operations } = this.#options;
    const session = this.#sessionOf(request);
    if (session === null) return problem(401, NO_SESSION, 'unauthorized');
    if (path === 'session') return { status: 200, body: JSON.stringify(this.#sessionDocument(session)) };
    if (path === 'events') return this.#openStream(request, response);
    // Here, since the lab lives in this thread.
    if (path === 'lab' && lab !== null) return { status: 200, body: JSON.stringify(lab()) };
    return operations.view(path, query, !session.read_only);
  }

  async #post(path: string, request: IncomingMessage): Promise<Answer> {
    if (path === 'session') return this.#logIn(request);
    const session = this.#sessionOf(request);
    if (session === null) return problem(401, NO_SESSION, 'unauthorized');
    if (path !== 'session/end') return problem(404, `There is no ${CONSOLE}${path} to post to.`, 'not_found');
    const { id, by } = session;
    this.#options.sessions.end(id);
    return this.#options.operations.run({ path: 'session-end', given: { id }, way: 'console', by });
  }

  async #logIn(request: IncomingMessage): Promise<Answer> {
    const { sessions, log } = this.#options;
    const address = request.socket.remoteAddress ?? '';
    const token = tokenOf(await readBody(request, BODY_BYTES_MAX, BODY_MS));
    const sealed = token === null ? null : sessions.redeem(token, now());
    const session = sealed === null ? null : sessions.open(sealed, now());
    if (sealed === null || session === null) {
      this.#strangers.note(address, 'link', () =>
        log.warn({ address }, 'a link into the console was refused'),
      );
      return problem(401, BAD_LINK, 'unauthorized');
    }
    const { by, read_only } = session;
    log.info({ ...by, read_only, address }, 'a session of the console began');
    const begun: SessionBegun = { secret: sealed };
    return { status: 200, body: JSON.stringify(begun) };
  }

  #sessionOf(request: IncomingMessage): OpenSession | null {
    // In a header, which browsers send only where the page says so: a cookie would go to every port of the host.
    const [, sealed] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    return sealed === undefined ? null : this.#options.sessions.open(sealed, now());
  }

  #openStream(request: IncomingMessage, response: ServerResponse): Answer | null {
    request.socket.setTimeout(0);
    response.setHeaders(new Headers(STREAM_HEAD));
    if (!this.#streams.add(response, () => this.#isStillOpen(request)))
      return problem(503, 'Too many consoles are open. Close one of them.', 'unavailable');
    response.writeHead(200);
    response.flushHeaders();
    return null;
  }

  /** True while access.db cannot be read: the stream then stays open, and no view is answered. */
  #isStillOpen(request: IncomingMessage): boolean {
    try {
      return this.#sessionOf(request) !== null;
    } catch (error) {
      if (error instanceof NotReadable) return true;
      throw error;
    }
  }

  #sessionDocument({ by, read_only, expiresMs }: OpenSession): Session {
    const { operations, lab } = this.#options;
    return {
      name: actorText(by),
      read_only,
      expires_at: formatMs(expiresMs),
      version: VERSION,
      demo: operations.settings.kind === 'demo',
      lab: lab !== null,
      now: formatMs(now()),
      base_url: operations.settings.base_url,
    };
  }
}

function tokenOf(body: Body): string | null {
  if (body.kind !== 'whole') return null;
  try {
    const value: unknown = JSON.parse(body.bytes.toString());
    const token = typeof value === 'object' && value !== null ? Reflect.get(value, 'token') : null;
    return typeof token === 'string' ? token : null;
  } catch {
    return null;
  }
}
