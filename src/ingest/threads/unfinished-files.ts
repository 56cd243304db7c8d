/**
 * Files that a crash, a full disk or permissions left unfinished: committed and still in `.taken`, backfills that are half
 * applied, and archived files without a record.
 */
import { applyBackfill, endWithoutFile } from '../apply/backfill.ts';
import { type FileStore, finishFile, recordsInTaken } from '../drop/finished-file.ts';
import { takeOrphaned } from '../drop/orphaned.ts';
import { isThereIn } from '../drop/own-folder.ts';
import { nullOfFileError } from '../file-errors.ts';
import { applyingFiles, type FileRecord } from '../file-record.ts';
import { switchedOff } from '../format/file-name.ts';
import type { Log } from '../reporting.ts';
import type { ExportReader } from './export-reader.ts';
import type { FullDisk } from './full-disk.ts';
import type { StuckFiles } from './stuck-files.ts';

export interface UnfinishedOptions {
  readonly files: FileStore;
  readonly exports: ExportReader;
  readonly stuck: StuckFiles;
  readonly between: () => Promise<void>;
  readonly log: Log;
  readonly onProcessed: (record: FileRecord) => void;
}

export class UnfinishedFiles {
  readonly #options: UnfinishedOptions;

  constructor(options: UnfinishedOptions) {
    this.#options = options;
  }

  /** Applies what only the log has, and moves committed files to their folders. */
  finishTaken(): void {
    const { files, stuck, log, onProcessed } = this.#options;
    files.writer.applyPending();
    const records = this.recordsInTaken().filter(({ outcome }) => outcome !== 'applying');
    const numbers = records.map(({ number }) => number);
    stuck.keepOnly('taken', numbers);
    for (const record of records) {
      try {
        finishFile(files, record);
        onProcessed(record);
        stuck.remove('taken', record.number);
      } catch (error) {
        const err = stuck.add(error, 'taken', record.number, record.name);
        log('error', 'cannot move a processed file: check the permissions of the folder', {
          file: record.name,
          err,
        });
      }
    }
  }

  /** None if the drop folder cannot be read: its scan reports that. */
  recordsInTaken(): FileRecord[] {
    try {
      return recordsInTaken(this.#options.files);
    } catch (error) {
      return nullOfFileError(error) ?? [];
    }
  }

  async resumeBackfills(disk: FullDisk): Promise<void> {
    const { files, exports, stuck, between, log, onProcessed } = this.#options;
    for (const { number, name, export: exportName } of applyingFiles(files.writer.db)) {
      if (stuck.isPostponed('backfill', number)) continue;
      const path = files.drop.takenPath(number, name);
      const isThere = () => isThereIn(files.drop.root, path);
      try {
        if (isThere() && exportName !== null && !exports.isEnabled({ export: exportName })) {
          // Its rows would all be left out.
          const reason = switchedOff(exportName);
          stuck.addUntilRestart('backfill', number, name, reason);
          log('warn', 'cannot resume a backfill: its export is switched off', { file: name, reason });
          continue;
        }
        await disk.retrying(async () => {
          const record = applyingFiles(files.writer.db).find((file) => file.number === number);
          if (record === undefined) return;
          if (!isThere()) {
            const ended = endWithoutFile(files, record);
            if (ended !== null) onProcessed(ended);
            return;
          }
          log('info', 'backfill resumed', { file: name, rows_applied: record.rows_applied });
          onProcessed(await applyBackfill(files, exports, record, between));
        });
        stuck.remove('backfill', number);
      } catch (error) {
        const err = stuck.add(error, 'backfill', number, name);
        log('error', 'cannot resume a backfill: check its permissions; trying again', {
          file: name,
          err,
        });
      }
    }
  }

  /** Those that an epoch asks for. */
  takeOrphaned(): void {
    const { files, stuck, log } = this.#options;
    if (stuck.isPostponed('archive', '')) return;
    try {
      takeOrphaned(files);
      stuck.remove('archive', '');
    } catch (error) {
      const err = stuck.add(error, 'archive', '', 'archive');
      log(
        'error',
        'cannot move files without a record out of the archive: check its permissions; trying again',
        { err },
      );
    }
  }
}
