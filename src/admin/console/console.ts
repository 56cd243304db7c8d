/**
 * The console's requests on the administration port, checked on the main thread: origin, session, permission. Views and
 * operations then run on the operations thread (admin/thread.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { actorText } from '../../auth/actor.ts';
import { SESSION_MS, type Ticket } from '../../auth/console-sessions.ts';
import { readBody } from '../../http/body.ts';
import { createStrangerLog } from '../../http/line-limit.ts';
import type { Logger } from '../../logger.ts';
import { unlessError } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import { VERSION } from '../../version.ts';
import { isForeign } from '../host-header.ts';
import { answerRequest, OPERATIONS_PATH } from '../operation-requests.ts';
import type { Operations } from '../thread-client.ts';
import { problem, type Told } from '../thread-messages.ts';
import type { Session, SessionBegun } from './api.ts';

export const CONSOLE = '/console/';

/** `lab`: the answer to `GET lab`, a LabState; null unless it is a lab. */
export type ConsoleOptions = Readonly<{ operations: Operations; lab: (() => object) | null; log: Logger }>;

/** The machine's clock, also in a lab: a session must survive a clock that is moved. */
const now = Date.now;
const BODY_BYTES_MAX = 64 * 1024;
const NO_SESSION = 'There is no session, or it has ended. Get a link with: wirewatch console';
const BAD_LINK =
  'This link was used already, has expired, or was made before the last start or for another installation. Get another with: wirewatch console';

export function createConsole({ operations, lab, log }: ConsoleOptions) {
  const { sessions, settings } = operations;
  const strangers = createStrangerLog(log);

  async function logIn(request: IncomingMessage): Promise<Told> {
    const address = request.socket.remoteAddress ?? '';
    const body = await readBody(request, BODY_BYTES_MAX);
    const { token } = Object(unlessError(null, () => JSON.parse(body.toString())));
    const session = typeof token === 'string' ? sessions.redeem(token, now()) : null;
    if (session === null) {
      strangers.note(address, 'link', () => log.warn({ address }, 'a link into the console was refused'));
      return problem(401, BAD_LINK, 'unauthorized');
    }
    const { by, read_only, token: secret } = session;
    log.info({ ...by, read_only, address }, 'a session of the console began');
    return { status: 200, body: JSON.stringify({ secret } satisfies SessionBegun) };
  }

  function sessionOf(request: IncomingMessage): Ticket | null {
    // In a header, which browsers send only where the page says so: a cookie would go to every port of the host.
    const [, secret] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    return secret === undefined ? null : sessions.open(secret, now());
  }

  function sessionDocument({ by, read_only, made_at }: Ticket): Session {
    const expires_at = formatMs(made_at + SESSION_MS);
    const kind = { demo: settings.kind === 'demo', lab: lab !== null };
    return { name: actorText(by), read_only, expires_at, version: VERSION, ...kind };
  }

  return {
    close: () => strangers.close(),
    /** @returns null for an operation that is answered in lines */
    async answer(request: IncomingMessage, response: ServerResponse): Promise<Told | null> {
      const { method, url = '' } = request;
      const [target = '', query = ''] = url.split('?', 2);
      if (method !== 'POST' && method !== 'GET')
        return problem(405, 'Only GET and POST.', 'method_not_allowed', { Allow: 'GET, POST' });
      if (isForeign(request)) return problem(403, 'A page of another origin cannot ask this.', 'forbidden');
      if (method === 'POST' && target === `${CONSOLE}session`) return logIn(request);
      const session = sessionOf(request);
      if (session === null) return problem(401, NO_SESSION, 'unauthorized');
      const { by, read_only } = session;
      if (target.startsWith(OPERATIONS_PATH)) {
        // Only browsers say where a request comes from.
        const way = request.headers['sec-fetch-site'] === undefined ? 'api' : 'console';
        log.info({ way, path: url, ...by }, 'an operation was asked for');
        const isValid = () => sessionOf(request) !== null;
        return answerRequest(request, response, operations, { way, by, mayAct: !read_only, isValid });
      }
      const path = target.slice(CONSOLE.length);
      if (method === 'POST') {
        if (path !== 'session/end') return problem(404, `There is no ${target} to post to.`, 'not_found');
        sessions.end(session.token);
        log.info({ ...by }, 'a session of the console was ended');
        return { status: 200, body: '{}' };
      }
      if (path === 'session') return { status: 200, body: JSON.stringify(sessionDocument(session)) };
      // Here, since the lab lives in this thread.
      if (path === 'lab' && lab !== null) return { status: 200, body: JSON.stringify(lab()) };
      return operations.view({ path, query, mayAct: !read_only });
    },
  };
}
