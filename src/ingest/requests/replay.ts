/** Replay: reads archived files again, as they were first read, under the present subscriptions. */
import { isDeepStrictEqual } from 'node:util';
import { reasonOfFile } from '../../drop/file-errors.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { type ApplyCounts, NO_COUNTS, sumOf } from '../apply/apply-rows.ts';
import { applyAgain } from '../apply/backfill.ts';
import { type FileRecord, saveFile, selectFiles } from '../files/file-record.ts';
import type { Ingest } from '../files/finished-file.ts';
import type { UnknownRows } from '../reading/row-batch.ts';
import type { ReplayCounts, RequestOf, Tell } from '../threads/ingest-messages.ts';

const APPLIED = "WHERE outcome = 'applied' AND finished_at >= ? AND finished_at < ? ORDER BY number";

/** @param bounds of the time when a file was first applied, epoch milliseconds */
export async function replay(ingest: Ingest, bounds: RequestOf<'replay'>, tell: Tell) {
  const { drop, writer, exports, between } = ingest;
  const counts: ReplayCounts = { files: 0, rows: 0, ...NO_COUNTS, left_out: 0, unreadable: [] };
  // The rows of an export that is switched off have no stream.
  const records = selectFiles(writer.db, APPLIED, bounds.from, bounds.to).filter(
    (record) => record.export !== null && exports.isEnabled(record.export),
  );
  for (const [index, record] of records.entries()) {
    tell(`file ${index + 1} of ${records.length}`);
    const reason = await replayFile(record).catch(reasonOfFile);
    if (reason === null) counts.files += 1;
    else counts.unreadable.push({ file: record.destination ?? record.name, reason });
    await between();
  }
  return counts;

  /** @returns why the file could not be read; null when it was */
  async function replayFile(record: FileRecord): Promise<string | null> {
    const { destination } = record;
    if (destination === null || !isThereIn(drop.root, destination))
      return 'the file is no longer in the archive';
    let applied: ApplyCounts = NO_COUNTS;
    let unknown_rows: UnknownRows = {};
    const operation = { kind: 'replay', file: record.number, name: record.name };
    const result = await applyAgain(ingest, record, destination, 0, operation, (_, inPart, unknown) => {
      Object.assign(counts, sumOf(counts, inPart));
      applied = sumOf(applied, inPart);
      unknown_rows = sumOf(unknown_rows, unknown);
    });
    const { rows, urls_withheld } = result.counts;
    counts.rows += rows;
    if (result.kind === 'bad') return 'the file does not match the export format';
    if (result.kind !== 'read') return result.reason;
    counts.left_out += Object.values(applied).reduce((left, handled) => left - handled, rows);
    // Rows without a subscription, and their alert, are those of the last reading; so are those without their URL.
    const report = { unknown_rows: {}, urls_withheld: 0, ...record.report };
    const after = { ...report, unknown_rows, urls_withheld };
    if (!isDeepStrictEqual(after, report))
      writer.write(operation, () => saveFile(writer.db, { ...record, report: after }));
    return null;
  }
}
