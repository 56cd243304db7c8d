/** The entry point of the worker threads: ingest, reader, operations (ARCHITECTURE.md). */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { OperationsSettings } from './admin/thread-messages.ts';

export type WorkerRole =
  | { readonly role: 'ingest' }
  | { readonly role: 'reader'; readonly photo_key: Uint8Array }
  | { readonly role: 'operations'; readonly settings: OperationsSettings };

const role: WorkerRole = workerData;
if (parentPort === null) throw new Error('worker.ts must run in a worker thread');
void work(parentPort);

/** Loads only the modules of the role. A failure ends the thread with an error, which the main thread receives. */
async function work(port: MessagePort) {
  switch (role.role) {
    case 'ingest': {
      const { createStandby } = await import('./copy/standby.ts');
      return (await import('./ingest/threads/ingest-thread.ts')).runIngester(port, createStandby());
    }
    case 'reader':
      return (await import('./ingest/reading/reader-thread.ts')).runReader(port, role.photo_key);
    case 'operations':
      return (await import('./admin/thread.ts')).runOperations(port, role.settings);
  }
}
