/**
 * Entry of the worker threads: the one that ingests, the one that reads exports for it, the one that writes usage, and
 * that of a scheduled backup.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { type BackupThreadSettings, runBackup } from './backup/backup-thread.ts';
import type { IngestSettings } from './ingest/ingest-settings.ts';
import { runIngester } from './ingest/ingester.ts';
import type { ReaderSettings } from './ingest/reader-messages.ts';
import { runReader } from './ingest/reader-thread.ts';
import { runUsageWriter, type UsageSettings } from './limits/usage-thread.ts';

export type WorkerRole =
  | { readonly role: 'ingest'; readonly settings: IngestSettings }
  | { readonly role: 'reader'; readonly settings: ReaderSettings }
  | { readonly role: 'usage'; readonly settings: UsageSettings }
  | { readonly role: 'backup'; readonly settings: BackupThreadSettings };

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
  case 'usage':
    runUsageWriter(parentPort, role.settings);
    break;
  case 'backup':
    void runBackup(parentPort, role.settings);
    break;
}
