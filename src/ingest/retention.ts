/**
 * Archived files that are older than the operator wants them kept are deleted; nothing else ever is, and none that
 * the oldest backup would need: what came after it is read again from the archive when it is put in place.
 */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '../refused.ts';
import { DAY_MS, HOUR_MS } from '../time.ts';
import { isFileError, plainError } from './faults.ts';
import { clearDestination, expiredFiles } from './file-record.ts';
import type { Workshop } from './workshop.ts';

const GROUP_FILES = 500;
const LOOK_EVERY_MS = HOUR_MS;

/**
 * When the oldest backup that is kept was begun, epoch milliseconds; null: there is none.
 *
 * @throws when that cannot be told, such as while its disk is not mounted
 */
export type OldestBackup = () => number | null;

export class Retention {
  readonly #workshop: Workshop;
  readonly #oldestBackup: OldestBackup;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(workshop: Workshop, oldestBackup: OldestBackup) {
    this.#workshop = workshop;
    this.#oldestBackup = oldestBackup;
  }

  /** Call it whenever there is time: it looks once an hour. */
  look(): void {
    const { settings, now, log } = this.#workshop;
    const nowMs = now();
    if (settings.archive_days === 0 || Math.abs(nowMs - this.#lookedAtMs) < LOOK_EVERY_MS) return;
    this.#lookedAtMs = nowMs;
    let oldestMs: number | null;
    try {
      oldestMs = this.#oldestBackup();
    } catch (error) {
      const err = plainError(error);
      log('warn', 'cannot see which backups there are: nothing is deleted from the archive', { err });
      return;
    }
    const beforeMs = nowMs - settings.archive_days * DAY_MS;
    deleteExpired(this.#workshop, Math.min(beforeMs, oldestMs ?? beforeMs));
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
    let deleted = 0;
    for (const { number, destination } of files) {
      const path = join(drop.root, destination ?? '');
      try {
        for (const each of [path, `${path}.skipped.ndjson`]) unlinkIfThere(each);
      } catch (error) {
        if (!isFileError(error)) throw error;
        log(
          'warn',
          'cannot delete an old file from the archive: check its rights; it is tried again in an hour',
          {
            file: destination,
            err: plainError(error),
          },
        );
        continue;
      }
      writer.note(() => clearDestination(db, number));
      deleted += 1;
    }
    writer.flush();
    if (deleted > 0) log('info', 'old files deleted from the archive', { files: deleted });
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
