/** The ingest thread: brings the database to the end of its log, then works until it is stopped. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../../clock.ts';
import { type Recovered, recoverDetections } from '../../history/recover.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { dataFolder } from '../../store/folder.ts';
import { sendEvent, serveCalls } from '../../thread-call.ts';
import { DropFolder } from '../drop/drop-folder.ts';
import { plainError } from '../file-errors.ts';
import { Ingester, Stopping } from './ingest-loop.ts';
import type { IngestCalls, IngestEvent, IngestSettings } from './ingest-messages.ts';
import { RETRY_MS } from './stuck-files.ts';

/** How soon a stop is noticed while the disk is full. */
const TURN_MS = 100;

type Send = (event: IngestEvent) => void;

export function runIngester(port: MessagePort): void {
  const send: Send = (event) => sendEvent(port, event);
  const begun = Promise.withResolvers<Ingester>();
  let ingester: Ingester | null = null;
  let isStopping = false;

  async function run(settings: IngestSettings): Promise<void> {
    try {
      const drop = new DropFolder(settings.drop, settings, monotonicMs);
      if (settings.mode === 'alone') drop.requireOf(dataFolder(settings.data));
      // Clients can read without it.
      drop.prepare(settings.mode === 'serve');
      const recovered = await recover(settings, { send, isStopping: () => isStopping });
      ingester = new Ingester(settings, drop, recovered, send);
      // Asked to while it recovered: nothing would ask again.
      if (isStopping) ingester.stop();
      begun.resolve(ingester);
      send({ kind: 'ready' });
      reportRecovered(recovered, send);
      await ingester.run();
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    } finally {
      await ingester?.close();
      port.close();
    }
  }

  serveCalls<IngestCalls>(port, {
    start: run,
    // Before the ingester exists it is lost: the client repeats its request.
    endLost: (cursor) => ingester?.lostEnd.note(cursor),
    ask: async ({ number, request }) =>
      (await begun.promise).ask(request, (progress) => send({ kind: 'told', number, progress })),
    // Before the ingester exists it has not read access.db.
    wake: () => ingester?.wake(),
    rested: async () => (await begun.promise).rested(),
    stop() {
      isStopping = true;
      ingester?.stop();
    },
  });
}

/** Waits while the disk is full; clients can read meanwhile if the database was readable before. */
async function recover(
  settings: IngestSettings,
  { send, isStopping }: { send: Send; isStopping: () => boolean },
): Promise<Recovered> {
  let isReadable = false;
  let shown = -1;
  for (let hasWaited = false; ; hasWaited = true) {
    try {
      const recovered = await recoverDetections({
        folder: dataFolder(settings.data),
        program: settings.program,
        onReadable: () => {
          isReadable = true;
          send({ kind: 'ready' });
        },
        onBegin: (reason) => send({ kind: 'recovering', reason }),
        onProgress: (done, total) => {
          const percent = Math.floor((100 * done) / total);
          // There may be many thousands of entries.
          if (percent === shown) return;
          shown = percent;
          send({ kind: 'progress', file: 'the log', rows: percent, isDone: done === total });
        },
        between: async () => {
          // A stop arrives only when the event loop turns.
          await nextTurn();
          if (isStopping()) throw new Stopping();
        },
      });
      if (hasWaited) send({ kind: 'condition', name: 'disk full', detail: null });
      return recovered;
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      const err = plainError(error);
      send({
        kind: 'log',
        level: 'error',
        msg: 'the disk is full: ingest waits for free space',
        fields: { err },
      });
      send({ kind: 'condition', name: 'disk full', detail: err.message });
      // The event lets the server start, so that the alert can be seen.
      if (!isReadable) send({ kind: 'recovering', reason: 'the disk is too full to bring it up to date' });
      for (let waited = 0; waited < RETRY_MS; waited += TURN_MS) {
        if (isStopping()) throw new Stopping();
        await sleep(TURN_MS);
      }
    }
  }
}

function reportRecovered({ applied, madeAnew }: Recovered, send: Send): void {
  if (madeAnew === null && applied === 0) return;
  const fields = { applied, made_anew: madeAnew };
  send({ kind: 'log', level: 'warn', msg: 'detections.db was brought up to date from the log', fields });
}
