/**
 * Does what a command asks: through the control socket of the appliance that runs on the data folder, else in this
 * process (operate-stopped.ts), with the same functions.
 */
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Actor } from '../auth/actor.ts';
import { isOfLab, type Operation, pathOf } from '../operations/operation.ts';
import { errorOf, type OutcomeDocument, type ProblemDocument } from '../operations/problem.ts';
import { failed, isErrorCode, type Refused, unlessError } from '../refused.ts';
import { socketPath } from '../store/control-path.ts';
import type { DataFolder } from '../store/folder.ts';
import { requireOwner } from '../store/owner.ts';
import { readLines } from '../text-lines.ts';
import { SECOND_MS } from '../time.ts';
import type { Asked } from './operate-stopped.ts';
import { anyFolder } from './options.ts';
import { showProgress } from './output.ts';

/** How long a running appliance may take to answer before it is said to hang. */
const ANSWER_MS = 5 * SECOND_MS;
/** How long one that starts may take until it can be asked. */
const START_MS = 30 * SECOND_MS;
const TRY_AGAIN_MS = 50;

/** @param kind of the installation: an operation of a lab is done only by one that runs. @throws Refused */
export async function operate(
  command: Command,
  operation: Operation,
  given: object,
  kind: 'appliance' | 'lab' = isOfLab(operation) ? 'lab' : 'appliance',
): Promise<OutcomeDocument> {
  // Also the folder of a lab: one that runs does every operation.
  const folder = anyFolder(command, kind);
  const asked = { operation, given, by: actorOfProcess() };
  for (const untilMs = performance.now() + START_MS; ; ) {
    const answer = await askRunning(folder, asked).catch((error: unknown) => {
      // Only the owner, and root, may open the socket.
      if (isErrorCode(error, 'EACCES')) requireOwner(folder);
      throw error;
    });
    if (answer !== null) return answer;
    if (kind === 'lab')
      throw failed(
        `no lab runs in ${folder.root}. Start one with: wirewatch lab, or name its folder with --data`,
      );
    const { operateStopped } = await import('./operate-stopped.ts');
    const own = await operateStopped(command, asked);
    if (own !== null) return own;
    if (performance.now() > untilMs) throw await hangs(folder, START_MS);
    await sleep(TRY_AGAIN_MS);
  }
}

/** @returns null if nobody listens: the socket is missing, left over by a crash, or being closed */
async function askRunning(folder: DataFolder, { operation, given, by }: Asked) {
  const late = AbortSignal.timeout(ANSWER_MS);
  let asking: ClientRequest | null = null;
  let response: IncomingMessage;
  try {
    if (statSync(folder.control, { throwIfNoEntry: false }) === undefined) return null;
    const path = socketPath(folder);
    asking = request({
      // Faster than by an agent, which loads what only TLS needs.
      createConnection: () => connect(path.text),
      method: 'POST',
      path: `/operations/${pathOf(operation)}`,
      headers: {
        Accept: 'application/x-ndjson',
        'Content-Type': 'application/json',
        'wirewatch-actor': Buffer.from(JSON.stringify(by)).toString('base64url'),
      },
    });
    asking.once('socket', (socket) => socket.once('connect', path.close).once('error', path.close));
    asking.on('error', () => {});
    [response] = await once(asking.end(JSON.stringify(given)), 'response', { signal: late });
  } catch (error) {
    asking?.destroy();
    // Reset by one that stops: it had not begun, for it says so first.
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE')) return null;
    throw late.aborted ? await hangs(folder, ANSWER_MS) : error;
  }
  return outcomeIn(response, operation);
}

/** @throws Refused as the operation, and if the appliance ends before its last line */
async function outcomeIn(response: IncomingMessage, { name }: Operation) {
  let end: { progress?: string; outcome?: OutcomeDocument; problem?: ProblemDocument } = {};
  try {
    for await (const line of readLines(response)) {
      end = JSON.parse(line);
      if (end.progress !== undefined) showProgress(end.progress);
    }
  } catch {
    // The end of the appliance has cut it off.
  }
  if (end.problem !== undefined) throw errorOf(end.problem);
  if (end.outcome !== undefined) return end.outcome;
  throw failed(
    `Wirewatch ended before it had answered. Whether ${name} was done is not known: look with wirewatch audit, then run it again.`,
  );
}

async function hangs(folder: DataFolder, waitedMs: number): Promise<Refused> {
  const { readProcessId } = await import('../store/noted-address.ts');
  const id = readProcessId(folder);
  const seconds = waitedMs / SECOND_MS;
  const named = id === null ? 'The process' : `Process ${id}`;
  const kill = id === null ? '' : ` (kill ${id}, or kill -9 ${id} if that does not help)`;
  return failed(
    `${named} that uses the data folder ${folder.root} has not answered for ${seconds} seconds. If it hangs, end it${kill}; then this command works on the stopped installation.`,
  );
}

/** Who runs the command, as the audit trail names it. */
export function actorOfProcess(): Actor {
  const { SUDO_USER } = process.env;
  // The number of a user who has no name.
  const actor = unlessError(`${process.getuid?.() ?? 'unknown'}`, () => userInfo().username);
  return { actor, ...(SUDO_USER && { sudo_user: SUDO_USER }) };
}
