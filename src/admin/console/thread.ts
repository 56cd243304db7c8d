/**
 * The console thread: it reads and acts for every open console, so that neither a long query nor a wait for the disk
 * delays the API.
 */

import type { MessagePort } from 'node:worker_threads';
import { now } from '../../clock.ts';
import { Refused, type RefusedCode, reasonOf } from '../../refused.ts';
import { openDatabase } from '../../store/database.ts';
import { isDamage } from '../../store/database-errors.ts';
import { createFileReader } from '../../store/file-reader.ts';
import { dataFolder } from '../../store/folder.ts';
import { sendEvent, serveCalls } from '../../thread-call.ts';
import { act } from './actions.ts';
import type { EventName } from './api.ts';
import { stateOf, watchChanges } from './changes.ts';
import { Jobs } from './jobs.ts';
import { read } from './reads.ts';
import type { Sources } from './sources.ts';
import { type Ask, type ConsoleCalls, type ConsoleSettings, problem, type Told } from './thread-messages.ts';

const STATUS: Readonly<Partial<Record<RefusedCode, number>>> = {
  invalid_request: 400,
  usage: 400,
  not_found: 404,
  failed: 409,
  configuration: 409,
  unavailable: 503,
};

export function runConsole(port: MessagePort, settings: ConsoleSettings): void {
  const folder = dataFolder(settings.data);
  const detections = createFileReader(folder.detections);
  const access = createFileReader(folder.access);
  const watch = watchChanges(folder, (events) => sendEvent<readonly EventName[]>(port, events));
  const jobs = new Jobs(() => sendEvent<readonly EventName[]>(port, ['jobs']));
  const sourcesFor = (unreadable: string | null): Sources => ({
    settings,
    folder,
    enabled: new Set(settings.enabled),
    jobs,
    version: () => [folder.alerts, detections, access].map(stateOf).join(),
    detections() {
      if (unreadable !== null) throw new Refused('unavailable', unreadable);
      return detections.db() ?? gone(folder.detections);
    },
    access: () => access.db() ?? gone(folder.access),
  });
  serveCalls<ConsoleCalls>(port, {
    ask: (ask) => tell(sourcesFor(ask.unreadable), ask),
    watch,
    async stop() {
      await jobs.close();
      process.exit();
    },
  });
}

function gone(path: string): never {
  throw new Refused('unavailable', `${path} is gone.`);
}

/** Never rejects. */
async function tell(sources: Sources, ask: Ask): Promise<Told> {
  try {
    const nowMs = now();
    const body = ask.kind === 'read' ? await read(sources, ask, nowMs) : await act(sources, ask, nowMs);
    return { status: 200, body };
  } catch (error) {
    const status = error instanceof Refused ? (STATUS[error.code] ?? 500) : 500;
    if (status !== 500) return problem(status, reasonOf(error));
    const detail = 'The console failed to answer. The log of Wirewatch has the cause.';
    const fault = { message: reasonOf(error), isDamage: isDamage(error) && isSound(sources.folder.access) };
    return { ...problem(500, detail), fault };
  }
}

/**
 * SQLite's error does not name the database. Damage of `access.db` must not be reported as damage of `detections.db`;
 * it is small enough to be checked completely.
 */
function isSound(path: string): boolean {
  try {
    using db = openDatabase(path, 'read');
    return db.pragma('quick_check(1)', { simple: true }) === 'ok';
  } catch {
    return false;
  }
}
