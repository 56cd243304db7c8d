/**
 * `control.sock` in the data folder: through it commands operate the running appliance. Who may enter the folder (0700)
 * and open the socket (0600) may read the secret as well, so there is no password.
 *
 * The path of a socket has at most 107 bytes. Linux offers a short way to any folder: by a descriptor of it.
 */
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { Actor } from '../auth/actor.ts';
import type { Logger } from '../logger.ts';
import { reasonOf, unlessError } from '../refused.ts';
import { socketPath } from '../store/control-path.ts';
import { type DataFolder, removeAtStop } from '../store/folder.ts';
import { answerRequest, send } from './operation-requests.ts';
import type { Operations } from './thread-client.ts';

/** Without it the appliance serves all the same: what prevents it is logged. */
export async function openControlSocket(folder: DataFolder, operations: Operations, log: Logger) {
  const server = createServer(async (request, response) => {
    response.on('error', () => {});
    const asker = { way: 'command', by: actorOf(request), mayAct: true, isValid: () => true } as const;
    try {
      send(response, await answerRequest(request, response, operations, asker));
    } catch (err) {
      log.error({ err }, 'an operation could not be answered');
      response.destroy();
    }
  });
  server.requestTimeout = 0;
  server.timeout = 0;
  // Left over by a crash: the caller has the folder's lock.
  rmSync(folder.control, { force: true });
  const path = socketPath(folder);
  try {
    // Nobody else may connect before its mode is set. It is bound within this call.
    const umask = process.umask(0o077);
    const listening = once(server.listen(path.text), 'listening');
    process.umask(umask);
    await listening;
    chmodSync(folder.control, 0o600);
  } catch (error) {
    log.error(
      { reason: reasonOf(error) },
      'commands cannot reach this process: its control socket cannot be opened',
    );
  } finally {
    path.close();
  }
  return {
    close() {
      removeAtStop(folder.control);
      return new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** The command says who acts: whoever can open the socket could write the audit trail itself. */
function actorOf({ headers }: IncomingMessage): Actor {
  const sent = Buffer.from(String(headers['wirewatch-actor']), 'base64url').toString();
  const { actor, sudo_user } = Object(unlessError(null, () => JSON.parse(sent)));
  if (typeof actor !== 'string') return { actor: 'unknown' };
  return typeof sudo_user === 'string' && sudo_user !== '' ? { actor, sudo_user } : { actor };
}
