/**
 * The console's requests, up to where the thread reads or acts: who asks, from where, and whether they may. Whatever
 * changes something must come from the console's own pages, by `Sec-Fetch-Site`, or else by `Origin` against `Host`
 * (OWASP, Cross-Site Request Forgery Prevention: Fetch Metadata).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Body, readBody } from '../../http/body.ts';
import { createRequestRate } from '../../limits/request-rate.ts';
import type { Logger } from '../../log.ts';
import { formatMs, type Now, SECOND_MS } from '../../time.ts';
import { VERSION } from '../../version.ts';
import type { Session } from './api.ts';
import { NotReadable, type OpenSession, SESSION_MS, type Sessions } from './sessions.ts';
import { createStreams } from './streams.ts';
import { createConsoleThread } from './thread-client.ts';
import { type ConsoleSettings, problem, type Told } from './thread-messages.ts';

export const CONSOLE = '/console/';

export interface ConsoleOptions {
  readonly settings: ConsoleSettings;
  readonly sessions: Sessions;
  /** Of an appliance with sample data. */
  readonly isDemo: boolean;
  /** What `GET lab` tells, a LabState; null for what is no lab. */
  readonly lab: (() => object) | null;
  /** Why detections.db must not be read now; null when it may. */
  readonly unreadable: () => string | null;
  /** Told of damage of detections.db that the thread met. */
  readonly onDamage: (message: string) => void;
  readonly log: Logger;
  /** Of the machine, also in a lab: links are made by other processes, and a session outlives a clock that is moved. */
  readonly now: Now;
}

export interface Answer extends Told {
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ConsoleServer {
  /**
   * Answers a request to a path that begins with {@link CONSOLE}; null when it goes on answering by itself.
   *
   * @param listening the port, which keeps cookies of two appliances on one machine apart; whether by TLS
   */
  answer(request: IncomingMessage, response: ServerResponse, listening: Listening): Promise<Answer | null>;
  close(): Promise<void>;
}

export interface Listening {
  readonly port: number;
  readonly isTls: boolean;
}

const BODY_BYTES_MAX = 64 * 1024;
const BODY_MS = 10 * SECOND_MS;
const LOGINS_A_MINUTE = 60;
const STREAM_HEAD = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

export function createConsole(options: ConsoleOptions): ConsoleServer {
  const { sessions, settings, log, now } = options;
  const thread = createConsoleThread(
    settings,
    (events) => streams.tell(events),
    (error) => log.error({ reason: error.message }, 'the console failed to answer'),
  );
  const streams = createStreams(thread.watch);
  const logins = createRequestRate(LOGINS_A_MINUTE);

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    listening: Listening,
  ): Promise<Answer | null> {
    const [target = '', query = ''] = (request.url ?? '').split('?', 2);
    const path = target.slice(CONSOLE.length);
    const isChange = request.method === 'POST';
    if (!isChange && request.method !== 'GET')
      return { ...problem(405, 'Only GET and POST.'), headers: { Allow: 'GET, POST' } };
    if (isChange) {
      const refused = whyForeign(request);
      if (refused !== null) return refused;
    }
    if (isChange && path === 'session') return login(request, listening);
    const session = sessionOf(request, listening);
    if (session === null) return problem(401, NO_SESSION);
    if (!isChange) return reading(path, query, { session, request, response, listening });
    if (path === 'session/end') {
      const ended = await act('session-end', JSON.stringify({ id: session.id }), session.name);
      const headers = { 'Set-Cookie': cookie(listening, '', 0) };
      return ended.status === 200 ? { ...ended, headers } : ended;
    }
    return acting(path, request, session);
  }

  async function login(request: IncomingMessage, listening: Listening): Promise<Answer> {
    const address = request.socket.remoteAddress ?? '';
    const rate = logins.take(address, now());
    if (!rate.allowed) {
      const wait = `${rate.reset_seconds}`;
      return {
        ...problem(429, `Too many attempts. Wait ${wait} seconds.`),
        headers: { 'Retry-After': wait },
      };
    }
    const token = tokenOf(await readBody(request, BODY_BYTES_MAX, BODY_MS));
    const sealed = token === null ? null : sessions.redeem(token, now());
    const session = sealed === null ? null : sessions.open(sealed, now());
    if (sealed === null || session === null) {
      log.warn({ address }, 'a link into the console was refused');
      return problem(401, BAD_LINK);
    }
    const { name, read_only } = session;
    log.info({ name, read_only, address }, 'a session of the console began');
    const headers = { 'Set-Cookie': cookie(listening, sealed, SESSION_MS / SECOND_MS) };
    return { status: 200, body: JSON.stringify(sessionDocument(session)), headers };
  }

  function sessionOf(request: IncomingMessage, listening: Listening): OpenSession | null {
    const prefix = `${cookieName(listening)}=`;
    const cookies = (request.headers.cookie ?? '').split(/; */);
    const sealed = cookies.find((one) => one.startsWith(prefix))?.slice(prefix.length);
    return sealed === undefined ? null : sessions.open(sealed, now());
  }

  /** While access.db cannot be read, nobody knows: then nothing is shown either. */
  function isStillOpen(request: IncomingMessage, listening: Listening): boolean {
    try {
      return sessionOf(request, listening) !== null;
    } catch (error) {
      if (error instanceof NotReadable) return true;
      throw error;
    }
  }

  async function reading(
    path: string,
    query: string,
    asked: {
      readonly session: OpenSession;
      readonly request: IncomingMessage;
      readonly response: ServerResponse;
      readonly listening: Listening;
    },
  ): Promise<Answer | null> {
    const { session, request, response, listening } = asked;
    if (path === 'session') return { status: 200, body: JSON.stringify(sessionDocument(session)) };
    if (path === 'events') {
      request.socket.setTimeout(0);
      response.setHeaders(new Headers(STREAM_HEAD));
      if (!streams.add(response, () => isStillOpen(request, listening)))
        return problem(503, 'Too many consoles are open. Close one of them.');
      response.writeHead(200);
      response.flushHeaders();
      return null;
    }
    // Here, since the lab lives in this thread.
    if (path === 'lab' && options.lab !== null) return { status: 200, body: JSON.stringify(options.lab()) };
    const mayAct = !session.read_only;
    return told(await thread.ask({ kind: 'read', path, query, mayAct, unreadable: options.unreadable() }));
  }

  async function acting(path: string, request: IncomingMessage, session: OpenSession): Promise<Answer> {
    const [, action] = /^actions\/([a-z-]{1,40})$/.exec(path) ?? [];
    if (action === undefined) return problem(404, `There is no ${CONSOLE}${path} to post to.`);
    if (session.read_only)
      return problem(403, 'This session may only read: it was made with wirewatch console --read-only.');
    const body = await readBody(request, BODY_BYTES_MAX, BODY_MS);
    if (body.kind !== 'whole') return problem(400, 'The body is too large, too slow or broken.');
    return act(action, body.bytes.toString(), session.name);
  }

  async function act(action: string, body: string, by: string): Promise<Answer> {
    const done = await thread.ask({ kind: 'act', action, body, by, unreadable: options.unreadable() });
    if (done.status === 200) log.info({ action, by }, 'something was done from the console');
    return told(done);
  }

  function told({ fault, ...answered }: Told): Answer {
    if (fault !== undefined) {
      log.error({ reason: fault.message }, 'the console failed to answer');
      if (fault.isDamage) options.onDamage(fault.message);
    }
    return answered;
  }

  function sessionDocument({ name, read_only, expiresMs }: OpenSession): Session {
    return {
      name,
      read_only,
      expires_at: formatMs(expiresMs),
      version: VERSION,
      demo: options.isDemo,
      lab: options.lab !== null,
      now: formatMs(now()),
      base_url: settings.base_url,
    };
  }

  return {
    answer: (request, response, listening) =>
      answer(request, response, listening).catch((error: unknown) => {
        if (!(error instanceof NotReadable)) throw error;
        return problem(503, 'Sessions cannot be checked: access.db cannot be read. See the alerts.');
      }),
    async close() {
      streams.close();
      await thread.close();
    },
  };
}

const NO_SESSION = 'There is no session, or it has ended. Get a link with: wirewatch console';
const BAD_LINK =
  'This link was used already, has expired, or is for another installation. Get another with: wirewatch console';

/** Null when the request comes from the console's own pages. */
function whyForeign(request: IncomingMessage): Answer | null {
  const { host, origin, 'sec-fetch-site': site, 'content-type': type = '' } = request.headers;
  const isOwn = site === undefined ? origin !== undefined && hostOf(origin) === host : site === 'same-origin';
  if (!isOwn)
    return problem(
      403,
      'This must come from the pages of the console: Sec-Fetch-Site or Origin says otherwise.',
    );
  // A form cannot send it.
  return /^application\/json\s*(;|$)/i.test(type) ? null : problem(415, 'Send it as application/json.');
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
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

function cookieName({ port }: Listening): string {
  return `wirewatch_console_${port}`;
}

function cookie(listening: Listening, value: string, seconds: number): string {
  const secure = listening.isTls ? '; Secure' : '';
  return `${cookieName(listening)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}
