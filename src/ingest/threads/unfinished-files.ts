/**
 * Files that a crash, a full disk or permissions left unfinished:
 *
 * | file | action |
 * |---|---|
 * | committed, and still in `.taken` | moved to its folder |
 * | a backfill that is half applied, in `.taken` | the rest is applied |
 * | a backfill that is half applied, and gone | it has failed |
 * | in the archive without a record, after a lost end | moved to `.taken`, and read |
 * | any other in `.taken` | read, like one in the drop folder (drop/waiting-names.ts) |
 */
import { unlessFileError } from '../../drop/file-errors.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { switchedOff } from '../../exports/file-name.ts';
import { applyBackfill, endWithoutFile } from '../apply/backfill.ts';
import { applyingFiles, type FileRecord } from '../files/file-record.ts';
import { finishFile, type Ingest, recordsInTaken } from '../files/finished-file.ts';

/** Applies what only the log has, and archives committed files. */
export async function finishTaken(ingest: Ingest): Promise<void> {
  const { writer, stuck, onProcessed } = ingest;
  writer.applyPending();
  // None if the drop folder cannot be read: its scan reports that.
  const taken = unlessFileError([], () => recordsInTaken(ingest));
  const records = taken.filter(({ outcome }) => outcome !== 'applying');
  const numbers = records.map(({ number }) => number);
  stuck.keepOnly('taken', numbers);
  for (const record of records)
    await stuck.attempt('taken', record.number, record.name, () => {
      finishFile(ingest, record);
      onProcessed(record);
    });
}

export async function resumeBackfills(ingest: Ingest): Promise<void> {
  const { writer, stuck } = ingest;
  for (const record of applyingFiles(writer.db))
    await stuck.attempt('backfill', record.number, record.name, () => resume(ingest, record));
}

async function resume(ingest: Ingest, record: FileRecord): Promise<void> {
  const { drop, exports, log, onProcessed } = ingest;
  const { number, name, rows_applied, export: exportName } = record;
  if (!isThereIn(drop.root, drop.takenPath(number, name))) return onProcessed(endWithoutFile(ingest, record));
  // Its rows would all be left out.
  if (exportName !== null && !exports.isEnabled({ export: exportName }))
    throw Object.assign(new Error(switchedOff(exportName)), { code: 'ENOTSUP' });
  log('info', 'backfill resumed', { file: name, rows_applied });
  onProcessed(await applyBackfill(ingest, record));
}
