/** Entry of the worker threads: the one that ingests, and the one that reads exports for it. */
import { parentPort, workerData } from 'node:worker_threads';
import type { IngestSettings } from './ingest/ingest-settings.ts';
import { runIngester } from './ingest/ingester.ts';
import type { ReaderSettings } from './ingest/reader-messages.ts';
import { runReader } from './ingest/reader-thread.ts';

export type WorkerRole =
  | { readonly role: 'ingest'; readonly settings: IngestSettings }
  | { readonly role: 'reader'; readonly settings: ReaderSettings };

const role: WorkerRole = workerData;
if (parentPort === null) throw new Error('a worker has a parent');
switch (role.role) {
  case 'ingest':
    // A failure ends the thread with an error, which the main thread hears of.
    void runIngester(parentPort, role.settings);
    break;
  case 'reader':
    runReader(parentPort, role.settings);
    break;
}
