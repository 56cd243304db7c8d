/** Archived files that are older than the operator wants them kept are deleted; nothing else ever is. */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../../refused.ts';
import { DAY_MS, HOUR_MS } from '../../time.ts';
import { clearDestination, expiredFiles } from '../apply/file-record.ts';
import { isFileError, plainError } from '../threads/thread-errors.ts';
import type { Workshop } from '../threads/workshop.ts';

const GROUP_FILES = 500;
const LOOK_EVERY_MS = HOUR_MS;

export class Retention {
  readonly #workshop: Workshop;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(workshop: Workshop) {
    this.#workshop = workshop;
  }

  /** Call it whenever there is time: it looks once an hour. */
  look(): void {
    const { settings, now } = this.#workshop;
    const nowMs = now();
    if (settings.archive_days === 0 || Math.abs(nowMs - this.#lookedAtMs) < LOOK_EVERY_MS) return;
    this.#lookedAtMs = nowMs;
    const beforeMs = nowMs - settings.archive_days * DAY_MS;
    deleteExpired(this.#workshop, beforeMs);
  }
}

/**
 * One that cannot be deleted keeps no other: it is told, and tried again at the next look.
 *
 * @param beforeMs files that were finished before it go, epoch milliseconds
 */
function deleteExpired(workshop: Workshop, beforeMs: number): void {
  const { db, drop, writer, log } = workshop;
  for (let after = 0; ; ) {
    const files = expiredFiles(db, { before: beforeMs, after, limit: GROUP_FILES });
    const last = files.at(-1);
    if (last === undefined) return;
    after = last.number;
    const gone: number[] = [];
    for (const { number, destination } of files) {
      const path = join(drop.root, destination ?? '');
      try {
        for (const each of [path, `${path}.skipped.ndjson`, `${path}.reason.json`]) unlinkIfThere(each);
      } catch (error) {
        if (!isFileError(error)) throw error;
        log(
          'warn',
          'cannot delete an old file from the archive: check its permissions; trying again in an hour',
          {
            file: destination,
            err: plainError(error),
          },
        );
        continue;
      }
      gone.push(number);
    }
    if (gone.length === 0) continue;
    writer.commit(writer.begin(), { kind: 'old files deleted' }, () => {
      for (const number of gone) clearDestination(db, number);
    });
    log('info', 'deleted old files from the archive', { files: gone.length });
  }
}

/** Unlike rmSync, it says of a folder in the file's place by the system's own error that it is one. */
function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isErrorCode(error, 'ENOENT')) throw error;
  }
}
