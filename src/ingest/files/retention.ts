/** Deletes archived files that are older than the operator keeps them. Nothing else is ever deleted. */
import { now } from '../../clock.ts';
import { isFileError, plainError, unlessFileError } from '../../drop/file-errors.ts';
import { hasArchive, removeIn } from '../../drop/own-folder.ts';
import { DAY_MS, HOUR_MS } from '../../time.ts';
import { clearDestination, type FileRecord, selectFiles } from './file-record.ts';
import type { Ingest } from './finished-file.ts';

const EXPIRED = `
  WHERE outcome IN ('applied', 'repeated') AND destination LIKE 'archive/%' AND finished_at < ? AND number > ?
  ORDER BY number LIMIT 500`;

/** @param archiveDays 0: for ever @returns what deletes expired files, once an hour; on a full disk it throws: call it again */
export function retention(files: Ingest, archiveDays: number): () => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    // Not that of ingest: a window from a clock that was ahead would let everything look old.
    const nowMs = now();
    if (archiveDays === 0 || Math.abs(nowMs - lastMs) < HOUR_MS) return;
    // Otherwise all its files would seem to be gone: looked at again at once, not in an hour. The scan reports an error.
    if (!unlessFileError(false, () => hasArchive(files.drop.root))) return;
    deleteExpired(files, nowMs - archiveDays * DAY_MS);
    lastMs = nowMs;
  };
}

/** @param beforeMs files that were finished before it go, epoch milliseconds */
function deleteExpired(files: Ingest, beforeMs: number): void {
  const { writer, log } = files;
  for (let after = 0; ; ) {
    const expired = selectFiles(writer.db, EXPIRED, beforeMs, after);
    const last = expired.at(-1);
    if (last === undefined) return;
    after = last.number;
    const gone = expired.filter((record) => deleteFile(files, record));
    if (gone.length === 0) continue;
    writer.write({ kind: 'old files deleted' }, () => {
      for (const { number } of gone) clearDestination(writer.db, number);
    });
    log('info', 'deleted old files from the archive', { files: gone.length });
  }
}

/** The file goes last: as long as its record names it, it is there. */
function deleteFile({ drop, log }: Ingest, { destination, report }: FileRecord): boolean {
  if (destination === null) return true;
  // Without bad rows, what has this name is not beside it: a backfill may be called so.
  const skipped = (report.bad_rows ?? 0) > 0 ? [`${destination}.skipped.ndjson`] : [];
  try {
    for (const each of [...skipped, `${destination}.reason.json`, destination]) removeIn(drop.root, each);
    return true;
  } catch (error) {
    if (!isFileError(error)) throw error;
    const fields = { file: destination, err: plainError(error) };
    log(
      'warn',
      'cannot delete an old file from the archive: check its permissions; trying again in an hour',
      fields,
    );
    return false;
  }
}
