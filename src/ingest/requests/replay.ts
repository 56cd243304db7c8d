/**
 * Replay: reads archived files again, as they were first read, under the present subscriptions.
 */
import { isDeepStrictEqual } from 'node:util';
import { reasonOfFile } from '../../drop/file-errors.ts';
import { isThereIn } from '../../drop/own-folder.ts';
import { recordedFile } from '../../exports/file-name.ts';
import { NO_COUNTS, sumOf } from '../apply/apply-rows.ts';
import { applyInParts, type InParts, REREAD } from '../apply/backfill.ts';
import { archivedFiles, type FileRecord, saveFile, takenBy } from '../files/file-record.ts';
import type { Ingest } from '../files/finished-file.ts';
import type { ReplayCounts, RequestOutcome } from './requests.ts';

/** @param bounds of the time when a file was first applied, epoch milliseconds */
export async function replay(
  ingest: Ingest,
  bounds: { readonly from: number; readonly to: number },
  tell: (progress: string) => void,
): Promise<RequestOutcome> {
  const { drop, writer, exports, between } = ingest;
  const counts: ReplayCounts = { files: 0, rows: 0, ...NO_COUNTS, left_out: 0, unreadable: [] };
  // The rows of an export that is switched off have no stream.
  const records = archivedFiles(writer.db, bounds.from, bounds.to).filter(
    (record) => record.export !== null && exports.isEnabled({ export: record.export }),
  );
  for (const [index, record] of records.entries()) {
    tell(`file ${index + 1} of ${records.length}`);
    const reason = await replayFile(record).catch(reasonOfFile);
    if (reason === null) counts.files += 1;
    else counts.unreadable.push({ file: record.destination ?? record.name, reason });
    await between();
  }
  return { ok: true, replay: counts };

  function handled(): number {
    return counts.created + counts.updated + counts.rescored + counts.unchanged;
  }

  /** @returns why the file could not be read; null when it was */
  async function replayFile(record: FileRecord): Promise<string | null> {
    const file = recordedFile(record);
    const { destination, mapping } = record;
    if (file === null || destination === null || !isThereIn(drop.root, destination))
      return 'the file is no longer in the archive';
    const source = drop.sourceAt(destination);
    const timeBounds = record.bounds ?? { earliest: exports.earliestAt(file, record.taken_at) };
    const taken = takenBy(writer.db, record);
    const read = (rows_to_skip: number) => {
      const rules = { ...REREAD, ...timeBounds, mapping, rows_to_skip };
      return exports.read(source, file, destination, { ...rules, former: exports.formerAt(taken) });
    };
    const before = handled();
    let unknown_rows: Record<string, number> = {};
    const inTransaction: InParts['inTransaction'] = (_, applied, unknownRows) => {
      Object.assign(counts, sumOf(counts, applied));
      unknown_rows = sumOf(unknown_rows, unknownRows);
    };
    const operation = { kind: 'replay', file: record.number, name: record.name };
    const result = await applyInParts(writer, read, { operation, between, inTransaction });
    counts.rows += result.counts.rows;
    if (result.kind === 'bad') return 'the file does not match the export format';
    if (result.kind !== 'read') return result.reason;
    counts.left_out += result.counts.rows - (handled() - before);
    // Rows without a subscription, and their alert, are those of the last reading; so are those without their URL.
    const { urls_withheld } = result.counts;
    const report = { unknown_rows: {}, urls_withheld: 0, ...record.report };
    const after = { ...report, unknown_rows, urls_withheld };
    if (!isDeepStrictEqual(after, report))
      writer.write(operation, () => saveFile(writer.db, { ...record, report: after }));
    return null;
  }
}
