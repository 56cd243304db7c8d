/** The ingest thread: brings the database to the end of its log, then works until it is stopped. */
import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../../clock.ts';
import { dropFolder } from '../../drop/drop-folder.ts';
import { type Recovered, recoverDetections } from '../../log/recover.ts';
import { findingsOf, readScrubRecord } from '../../log/scrub-findings.ts';
import { Refused, reasonOf } from '../../refused.ts';
import { closeDetections } from '../../store/checkpoint.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { dataFolder, requireSeparate, usedFolders } from '../../store/folder.ts';
import { LogDamage } from '../../store/log-errors.ts';
import { readRole, roleOf } from '../../store/role.ts';
import { callsTo, serveCalls } from '../../thread-call.ts';
import { WakeableTimer } from '../../wakeable-timer.ts';
import type { IngestCondition, Reporting } from '../reporting.ts';
import { copyDecisions } from './decisions.ts';
import { type Ingester, type IngesterOptions, ingester, Stopping } from './ingest-loop.ts';
import type { CopySettings, IngestCalls, IngestEvents, ToMain } from './ingest-messages.ts';
import { waitForRoom } from './retry-pauses.ts';

/** What a standby does in this thread, before it ingests (copy/standby.ts). */
export interface Standby {
  /** Follows the copy, if this machine is a standby, until its promotion. @returns what to ingest with @throws Stopping */
  prepare(parts: StandbyParts): Promise<Recovered>;
  /** @throws Refused `failed` with the reason */
  promote(by: object): Promise<void>;
  /** Makes a damaged log anew from the copy. @throws the reason why it cannot */
  heal(data: string, copy: CopySettings): Promise<void>;
}

export type StandbyParts = Omit<IngesterOptions, 'decisions'> & { readonly recovered: Recovered };

export function runIngester(port: MessagePort, standby: Standby): void {
  const { post: send } = callsTo<IngestEvents>(port, 'the main thread');
  const begun = Promise.withResolvers<Ingester>();
  const stopped = new AbortController();
  let working: Ingester | null = null;

  async function run({ settings, decided, isAgain }: Parameters<IngestCalls['start']>[0]): Promise<void> {
    const timer = new WakeableTimer();
    stopped.signal.addEventListener('abort', () => timer.wake());
    const reporting = reportingBy(send);
    const decisions = copyDecisions({
      shared: decided,
      copy: settings.copy,
      propose: (entry) => send('proposed', entry),
      stopping: () => new Stopping(),
    });
    const options = { settings, send, timer, decisions, stopped: stopped.signal, ...reporting };
    try {
      const folder = dataFolder(settings.data);
      const drop = dropFolder(settings.drop, settings, monotonicMs);
      const mayFollow = settings.copy?.standby === true;
      // Clients can read without it, and a standby does not need it.
      const prepare = async () => {
        await requireSeparate(drop.root, usedFolders(folder, settings.photos));
        drop.prepare(settings.mode === 'serve');
      };
      if (!mayFollow) await prepare();
      // By the last `wirewatch verify`.
      const verified = readScrubRecord(folder);
      if (verified !== null && findingsOf(verified, 'log').length > 0) await heal(options, standby);
      let recovered = await recover(options, isAgain).catch(async (error) => {
        const isOfLog = error instanceof Refused && error.cause instanceof LogDamage;
        if (!isOfLog || !(await heal(options, standby))) throw error;
        return recover(options, isAgain);
      });
      if (mayFollow) send('ready');
      try {
        recovered = await standby.prepare({ ...options, recovered });
        if (mayFollow) {
          send('promoted');
          await prepare();
        }
        working = ingester(options, drop, recovered);
      } catch (error) {
        recovered.log.close();
        closeDetections(recovered.db);
        throw error;
      }
      begun.resolve(working);
      send('ready');
      const { applied, madeAnew: made_anew } = recovered;
      if (made_anew !== null || applied > 0)
        reporting.log('warn', 'detections.db was brought up to date from the log', { applied, made_anew });
      await working.run();
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    } finally {
      await working?.close();
      port.close();
    }
  }

  serveCalls<IngestCalls>(port, {
    start: run,
    // Before the ingester exists it is lost: the client repeats its request.
    endLost: (cursor) => working?.endLost(cursor),
    ask: async (request, tell) => (await begun.promise).ask(request, tell),
    // Before the ingester exists it has not read access.db.
    wake: () => working?.wake(),
    rested: async () => (await begun.promise).rested(),
    // The thread may end before it ingests: then the caller gets to know it.
    async promote(by) {
      await standby.promote(by);
      await begun.promise;
    },
    stop: () => stopped.abort(new Stopping()),
  });
}

/** @returns whether nothing of the log is damaged any more */
async function heal({ settings, send, log }: IngesterOptions, standby: Standby): Promise<boolean> {
  if (settings.copy === null) return false;
  try {
    await standby.heal(settings.data, settings.copy);
    // The next verify is due.
    rmSync(dataFolder(settings.data).verified, { force: true });
    log('warn', 'the damaged log was rebuilt from the copy');
    send('healed');
    return true;
  } catch (error) {
    log('warn', 'the damaged log cannot be rebuilt from the copy', { reason: reasonOf(error) });
    return false;
  }
}

/** Waits while the disk is full. */
async function recover(options: IngesterOptions, isAgain: boolean): Promise<Recovered> {
  const { settings, decisions, send, stopped, setCondition } = options;
  const folder = dataFolder(settings.data);
  const isStandby = settings.copy !== null && roleOf(readRole(folder), settings.copy) === 'standby';
  let isReadable = false;
  let shown = -1;
  for (;;) {
    try {
      const recovered = await recoverDetections({
        folder,
        isAgain,
        // What a standby has came from the copy.
        ...(!isStandby && { decisions }),
        onReadable: () => {
          isReadable = true;
          send('ready');
        },
        onBegin: (reason) => send('recovering', reason),
        onProgress: (done, total) => {
          const percent = Math.floor((100 * done) / total);
          // There may be many thousands of entries.
          if (percent === shown) return;
          shown = percent;
          send('progress', { file: 'the log', rows: percent, isDone: done === total });
        },
        between: async () => {
          // A stop arrives only when the event loop turns.
          await nextTurn();
          stopped.throwIfAborted();
        },
      });
      setCondition('disk full', null);
      return recovered;
    } catch (error) {
      // The event lets the server start, so that the alert can be seen.
      if (isDiskFull(error) && !isReadable) send('recovering', 'the disk is too full to bring it up to date');
      await waitForRoom(error, options);
    }
  }
}

/** Reports by events; of conditions, only changes. */
function reportingBy(send: ToMain): Reporting {
  const known = new Map<IngestCondition, string | null>();
  return {
    log: (level, msg, fields = {}) => send('log', { level, msg, fields }),
    setCondition(name, detail) {
      if ((known.get(name) ?? null) !== detail) send('condition', { name, detail });
      known.set(name, detail);
    },
  };
}
