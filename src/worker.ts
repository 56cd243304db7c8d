/**
 * Entry of the worker threads: the one that ingests, the one that reads exports for it, the one that writes usage, and
 * the one that copies a database for a backup.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type CopySettings, runCopy } from './backup/copy-thread.ts';
import { oldestKept } from './backup/kept-files.ts';
import type { IngestSettings } from './ingest/ingest-settings.ts';
import { runIngester } from './ingest/ingest-thread.ts';
import type { ReaderSettings } from './ingest/reader-messages.ts';
import { runReader } from './ingest/reader-thread.ts';
import { runUsageWriter, type UsageSettings } from './limits/usage-thread.ts';

export type WorkerRole =
  | { readonly role: 'ingest'; readonly settings: IngestSettings }
  | { readonly role: 'reader'; readonly settings: ReaderSettings }
  | { readonly role: 'usage'; readonly settings: UsageSettings }
  | { readonly role: 'copy'; readonly settings: CopySettings };

const role: WorkerRole = workerData;
if (parentPort === null) throw new Error('a worker has a parent');
switch (role.role) {
  case 'ingest':
    // A failure ends the thread with an error, which the main thread hears of.
    void runIngester(parentPort, role.settings, () => oldestKept(role.settings.backups));
    break;
  case 'reader':
    runReader(parentPort, role.settings);
    break;
  case 'usage':
    runUsageWriter(parentPort, role.settings);
    break;
  case 'copy':
    runCopy(role.settings);
    break;
}
