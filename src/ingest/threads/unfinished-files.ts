/**
 * Files that a crash, a full disk or permissions left unfinished: committed and still in `.taken`, backfills that are half
 * applied, and archived files without a record.
 */

import { nullOfFileError } from '../../drop/file-errors.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { switchedOff } from '../../exports/file-name.ts';
import { applyBackfill, endWithoutFile } from '../apply/backfill.ts';
import { applyingFiles, type FileRecord } from '../files/file-record.ts';
import { finishFile, type Ingest, recordsInTaken } from '../files/finished-file.ts';
import { moveOrphaned } from '../files/orphaned.ts';

/** Applies what only the log has, and moves committed files to their folders. */
export function finishTaken(ingest: Ingest): void {
  const { writer, stuck, log, onProcessed } = ingest;
  writer.applyPending();
  const records = committedFiles(ingest).filter(({ outcome }) => outcome !== 'applying');
  const numbers = records.map(({ number }) => number);
  stuck.keepOnly('taken', numbers);
  for (const record of records) {
    const { number, name } = record;
    try {
      finishFile(ingest, record);
      onProcessed(record);
      stuck.remove('taken', number);
    } catch (error) {
      const err = stuck.add(error, 'taken', number, name);
      if (err !== null)
        log('error', 'cannot move a processed file: check the permissions of the folder', {
          file: name,
          err,
        });
    }
  }
}

/** The records of files in `.taken`. None if the drop folder cannot be read: its scan reports that. */
export function committedFiles(ingest: Ingest): FileRecord[] {
  try {
    return recordsInTaken(ingest);
  } catch (error) {
    return nullOfFileError(error) ?? [];
  }
}

export async function resumeBackfills(ingest: Ingest): Promise<void> {
  const { drop, writer, exports, stuck, log, onProcessed, untilRoom } = ingest;
  for (const { number, name, export: exportName } of applyingFiles(writer.db)) {
    if (stuck.isPostponed('backfill', number)) continue;
    const isThere = () => isThereIn(drop.root, drop.takenPath(number, name));
    try {
      if (isThere() && exportName !== null && !exports.isEnabled({ export: exportName })) {
        // Its rows would all be left out.
        const reason = switchedOff(exportName);
        stuck.addUntilRestart('backfill', number, name, reason);
        log('warn', 'cannot resume a backfill: its export is switched off', { file: name, reason });
        continue;
      }
      await untilRoom(async () => {
        const record = applyingFiles(writer.db).find((file) => file.number === number);
        if (record === undefined) return;
        if (isThere()) {
          log('info', 'backfill resumed', { file: name, rows_applied: record.rows_applied });
          onProcessed(await applyBackfill(ingest, record));
          return;
        }
        const ended = endWithoutFile(ingest, record);
        if (ended !== null) onProcessed(ended);
      });
      stuck.remove('backfill', number);
    } catch (error) {
      const err = stuck.add(error, 'backfill', number, name);
      if (err !== null)
        log('error', 'cannot resume a backfill: check its permissions; trying again', { file: name, err });
    }
  }
}

/** Those that an epoch asks for. */
export function takeOrphaned(ingest: Ingest): void {
  const { stuck, log } = ingest;
  if (stuck.isPostponed('archive', '')) return;
  try {
    moveOrphaned(ingest);
    stuck.remove('archive', '');
  } catch (error) {
    const err = stuck.add(error, 'archive', '', 'archive');
    if (err === null) return;
    log(
      'error',
      'cannot move files without a record out of the archive: check its permissions; trying again',
      { err },
    );
  }
}
