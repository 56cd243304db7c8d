/** The thread that ingests: what it and the main thread say to each other. */
import { once } from 'node:events';
import type { MessagePort } from 'node:worker_threads';
import { Refused } from '../refused.ts';
import type { FromIngest, IngestSettings, ToIngest } from './ingest-settings.ts';
import { Ingester } from './ingester.ts';
import type { OldestBackup } from './retention.ts';

export async function runIngester(
  port: MessagePort,
  oldestBackup: (backups: IngestSettings['backups']) => ReturnType<OldestBackup>,
): Promise<void> {
  const [first]: ToIngest[] = await once(port, 'message');
  if (first?.kind !== 'start') {
    port.close();
    return;
  }
  const { settings } = first;
  const send = (message: FromIngest) => port.postMessage(message);
  let ingester: Ingester;
  try {
    ingester = new Ingester(settings, send, () => oldestBackup(settings.backups));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    send(refused(error));
    return;
  }
  port.on('message', (message: ToIngest) => {
    if (message.kind === 'stop') ingester.stop();
  });
  send({ kind: 'ready' });
  try {
    await ingester.run();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    send(refused(error));
  } finally {
    await ingester.close();
    port.close();
  }
}

/** An error loses its class on the way to another thread. */
function refused({ code, message }: Refused): FromIngest {
  return { kind: 'refused', code, detail: message };
}
