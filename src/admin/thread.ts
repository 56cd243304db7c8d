/**
 * The operations thread: it does what operators ask, from the command line, the administration API and the console, and
 * reads the console's views, so that neither a long query nor a wait for the disk delays the API.
 */
import type { MessagePort } from 'node:worker_threads';
import type { Doing } from '../auth/actor.ts';
import { applyRevocations, type Ended, readEnded } from '../auth/denials.ts';
import { openAccess } from '../auth/open-access.ts';
import { now } from '../clock.ts';
import { Jobs } from '../operations/jobs.ts';
import { type Context, type Live, type Operation, refusedBy } from '../operations/operation.ts';
import { outcomeDocument, statusOf } from '../operations/problem.ts';
import { endProcesses } from '../operations/processes.ts';
import { operationAt } from '../operations/table.ts';
import { failed, Refused, reasonOf, unlessError } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { isDamage } from '../store/database-errors.ts';
import { createFileReader } from '../store/file-reader.ts';
import { dataFolder } from '../store/folder.ts';
import { callsTo, serveCalls } from '../thread-call.ts';
import { MINUTE_MS } from '../time.ts';
import { read } from './console/reads.ts';
import type { Sources } from './console/sources.ts';
import {
  type AskOperation,
  type MainCalls,
  type OperationsCalls,
  type OperationsSettings,
  problem,
  type Told,
  type WithLive,
} from './thread-messages.ts';

export function runOperations(port: MessagePort, { config, kind }: OperationsSettings): void {
  const folder = dataFolder(config.dataFolder);
  const detections = createFileReader(folder.detections);
  const access = createFileReader(folder.access);
  const main = callsTo<MainCalls>(port, 'the main thread');
  const jobs = new Jobs();
  /** What access.db could not take since this thread began. */
  let denied: readonly Ended[] = [];

  /** Runs `work` on a writer of access.db, behind what was revoked while it could not be written. */
  function changeAccess<Result>(operation: Doing, work: (access: Database) => Result): Result {
    const onSpareStale = (reason: string) => main.post('stale', reason);
    using writer = openAccess(folder.root, { operation, onSpareStale });
    main.post('forget', applyRevocations(folder, writer, denied));
    denied = [];
    return work(writer);
  }

  const shared = (live: Live) => ({
    ...{ folder, kind, config, live, nowMs: now() },
    access: () => access.db() ?? gone(folder.access),
    detections() {
      if (live.unreadable !== null) throw new Refused('unavailable', live.unreadable);
      return detections.db();
    },
  });
  const sourcesFor = (live: Live): Sources => {
    const known = shared(live);
    return { ...known, jobs, detections: () => known.detections() ?? gone(folder.detections) };
  };
  const contextFor = (
    { live, way, by }: WithLive<AskOperation>,
    { name }: Operation,
    tell: Tell,
    // By this operation, since `live` was read.
    isPromoted = false,
  ): Context => ({
    ...shared(live),
    isNew: false,
    by,
    change(work) {
      if (!isPromoted) requireWriter(live);
      const result = changeAccess({ kind: way, command: name, ...by }, work);
      main.post('written');
      return result;
    },
    async ingest(request) {
      requireWriter(live);
      return (await main.call('ingest', request, tell)) as never;
    },
    async promote() {
      if (live.role === 'superseded') throw refusedBy(live.role, live.copy?.to ?? config.copy.to);
      if (live.role === 'writer') return false;
      await main.call('promote', by);
      isPromoted = true;
      return true;
    },
    running: {
      lab(name, values) {
        if (kind === 'appliance') throw failed(NO_LAB);
        return main.call('lab', { name, values, operation: { kind: way, command: `lab ${name}`, ...by } });
      },
      remember: (link) => main.post('link', link),
      endSessions: () => main.post('endSessions'),
      deny(ended) {
        denied = [...denied, ended];
        main.post('deny', ended);
      },
    },
  });

  async function run(ask: WithLive<AskOperation>, tell: Tell): Promise<string> {
    const operation = operationAt(ask.path);
    if (operation === null) throw new Refused('not_found', `there is no operation ${ask.path}.`);
    const { given, by, live } = ask;
    const work = (tellAll: Tell) => operation.run(contextFor(ask, operation, tellAll), given);
    const subject = operation.job?.(given, shared(live));
    if (subject === undefined) return JSON.stringify(outcomeDocument(await work(tell)));
    const { job, outcome } = jobs.run({ operation: operation.name, subject, by, nowMs: now() }, tell, work);
    if (ask.isAsync !== true) return JSON.stringify(outcomeDocument(await outcome));
    outcome.catch(() => {});
    return JSON.stringify(job);
  }

  /** Never rejects. */
  async function tellOf(answer: () => Promise<string>): Promise<Told> {
    try {
      return { status: 200, body: await answer() };
    } catch (error) {
      if (error instanceof Refused) return problem(statusOf(error), error.message, error.code);
      const detail = `Wirewatch failed to answer: ${reasonOf(error)}. Its log has more.`;
      const fault = { message: reasonOf(error), isDamage: isDamage(error) && isSound(folder.access) };
      return { ...problem(500, detail, 'fault'), fault };
    }
  }

  // Sooner than the next change, which may be long in coming.
  setInterval(() => {
    // While the disk cannot take it, an alert says so.
    unlessError(undefined, () => {
      if (denied.length > 0 || readEnded(folder).length > 0) changeAccess({ kind: 'start' }, () => {});
    });
  }, MINUTE_MS).unref();

  serveCalls<OperationsCalls>(port, {
    view: (ask) => tellOf(() => read(sourcesFor(ask.live), ask)),
    operate: (ask, tell) => tellOf(() => run(ask, tell)),
    async stop() {
      await endProcesses();
      process.exit();
    },
  });
}

type Tell = (progress: string) => void;

const NO_LAB = 'this is not a lab. Start one with: wirewatch lab';

function gone(path: string): never {
  throw new Refused('unavailable', `${path} is missing. A start makes it anew: restart Wirewatch.`);
}

/**
 * SQLite's error does not name the database. Damage of `access.db` must not be reported as damage of `detections.db`;
 * it is small enough to be checked completely.
 */
const isSound = (path: string): boolean =>
  unlessError(false, () => {
    using db = openDatabase(path, 'read');
    return db.pragma('quick_check(1)', { simple: true }) === 'ok';
  });

/** What a standby would change, the writer's next change would undo. @throws Refused `failed` */
function requireWriter({ role, copy }: Live): void {
  if (role !== 'writer') throw refusedBy(role, copy?.to ?? '');
}
