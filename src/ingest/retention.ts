/** Archived files that are older than the operator wants them kept are deleted; nothing else ever is. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { clearDestination, expiredFiles } from './file-record.ts';
import type { Workshop } from './workshop.ts';

const GROUP_FILES = 500;

/** @param beforeMs files that were finished before it go, epoch milliseconds */
export function deleteExpired(workshop: Workshop, beforeMs: number): void {
  const { db, drop, writer, log } = workshop;
  for (let files = expiredFiles(db, beforeMs, GROUP_FILES); files.length > 0; ) {
    for (const { number, destination } of files) {
      const path = join(drop.root, destination ?? '');
      rmSync(path, { force: true });
      rmSync(`${path}.skipped.ndjson`, { force: true });
      writer.note(() => clearDestination(db, number));
    }
    writer.flush();
    log('info', 'old files deleted from the archive', { files: files.length });
    files = expiredFiles(db, beforeMs, GROUP_FILES);
  }
}
