/** The thread that ingests: brings the database to the end of its log, then works until it is told to stop. */
import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../../clock.ts';
import { type Recovered, recoverDetections } from '../../history/recover.ts';
import { Refused } from '../../refused.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { dataFolder } from '../../store/folder.ts';
import { DropFolder } from '../drop/drop-folder.ts';
import { Ingester, RETRY_MS } from './ingest-loop.ts';
import type { FromIngest, IngestSettings, ToIngest } from './ingest-settings.ts';
import { plainError } from './thread-errors.ts';
import { Stopping } from './workshop.ts';

export async function runIngester(port: MessagePort): Promise<void> {
  const [first]: ToIngest[] = await once(port, 'message');
  if (first?.kind !== 'start') {
    port.close();
    return;
  }
  const { settings } = first;
  const send = (message: FromIngest) => port.postMessage(message);
  let ingester: Ingester | null = null;
  let isStopping = false;
  port.on('message', (message: ToIngest) => {
    // Before it is there, whoever has such a cursor comes again.
    if (message.kind === 'end lost') ingester?.lostEnd.note(message.position);
    if (message.kind === 'rest') ingester?.askRest();
    if (message.kind !== 'stop') return;
    isStopping = true;
    ingester?.stop();
  });
  try {
    const drop = new DropFolder(settings.drop, settings, monotonicMs);
    if (settings.mode === 'requests') drop.requireOf(dataFolder(settings.data));
    drop.prepare();
    const recovered = await recover(settings, send, () => isStopping);
    ingester = new Ingester(settings, drop, recovered, send);
    send({ kind: 'ready' });
    tellRecovered(recovered, send);
    await ingester.run();
  } catch (error) {
    if (error instanceof Refused) send({ kind: 'refused', code: error.code, detail: error.message });
    else if (!(error instanceof Stopping)) throw error;
  } finally {
    await ingester?.close();
    port.close();
  }
}

/** Waits for room where the disk is full: what can be read, is read meanwhile. */
async function recover(
  settings: IngestSettings,
  send: (message: FromIngest) => void,
  isStopping: () => boolean,
): Promise<Recovered> {
  let isReadable = false;
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
          send({ kind: 'progress', file: 'the log', rows: percent, isDone: done === total });
        },
        between: async () => {
          // A message that asks to stop is heard only when the event loop turns.
          await nextTurn();
          if (isStopping()) throw new Stopping();
        },
      });
      if (hasWaited) send({ kind: 'trouble', name: 'disk full', detail: null });
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
      send({ kind: 'trouble', name: 'disk full', detail: err.message });
      // The port is opened, so that this can be seen.
      if (!isReadable) send({ kind: 'recovering', reason: 'the disk is too full to bring it up to date' });
      for (let waited = 0; waited < RETRY_MS; waited += TURN_MS) {
        if (isStopping()) throw new Stopping();
        await sleep(TURN_MS);
      }
    }
  }
}

function tellRecovered({ applied, madeAnew }: Recovered, send: (message: FromIngest) => void): void {
  if (madeAnew === null && applied === 0) return;
  const fields = { applied, made_anew: madeAnew };
  send({ kind: 'log', level: 'warn', msg: 'detections.db was brought up to date from the log', fields });
}

/** How soon a stop is heard while the disk is full. */
const TURN_MS = 100;
