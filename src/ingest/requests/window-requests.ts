/** Requests about a window: read a file that is held for it, expect windows from it on, and the gap of a lab. */
import { formatMs, type Now } from '../../time.ts';
import { expectFrom, findWindow, setWindow } from '../../windows/ledger.ts';
import type { StreamWriter } from '../apply/stream-writer.ts';
import { ingestWindowFile, type WaitingWindow } from '../apply/window-file.ts';
import { type FileStore, recordsInTaken, rewriteReason } from '../drop/finished-file.ts';
import { reasonOfFile } from '../file-errors.ts';
import { clearDestination, type FileRecord, filesLeft } from '../file-record.ts';
import { parseFileName, switchedOff } from '../format/file-name.ts';
import type { ExportReader } from '../threads/export-reader.ts';
import type { IngestRequest, RequestOutcome } from './requests.ts';

type RequestOf<Kind extends IngestRequest['kind']> = Extract<IngestRequest, { kind: Kind }>;

/** @param onProcessed called once the file was read, applied or not */
export async function reset(
  files: FileStore,
  exports: ExportReader,
  request: RequestOf<'reset'>,
  onProcessed: (record: FileRecord) => void,
): Promise<RequestOutcome> {
  const { db } = files.writer;
  const window = `window ${formatMs(request.window_start)} of ${request.export}`;
  const status = findWindow(db, request.export, request.window_start)?.status;
  if (status !== request.from)
    return {
      ok: false,
      reason: `${window} is now ${status ?? 'unknown'}, so no file was read. To list windows, run: wirewatch window list`,
    };
  const waiting = heldFile(files, request);
  if (waiting === null)
    return { ok: false, reason: `held/ and failed/ contain no file for ${window}. Drop one.` };
  if (!exports.isEnabled(request)) return { ok: false, reason: switchedOff(request.export) };
  // The operator asked for this file: it is read whatever is configured for failed windows.
  const processed = await ingestWindowFile(files, exports, waiting, 'read').catch(reasonOfFile);
  if (typeof processed === 'string') return afterError(files, request, processed);
  if (processed === null)
    return { ok: false, reason: `${waiting.path} changed while it was being read. Try again.` };
  onProcessed(processed);
  for (const left of filesLeft(db, request.export, request.window_start)) rewriteReason(files, left);
  const { name, destination, outcome, report } = processed;
  return { ok: true, reset: { file: destination ?? name, outcome, reason: report.reason ?? null } };
}

/** The newest file that is held for a window, or else that failed; null: there is none. */
function heldFile({ drop, writer }: FileStore, request: RequestOf<'reset'>): WaitingWindow | null {
  for (const record of filesLeft(writer.db, request.export, request.window_start)) {
    const path = record.destination ?? '';
    const parsed = parseFileName(record.name);
    const snapshot = drop.snapshot(path);
    if (typeof snapshot !== 'string' && parsed.kind === 'export' && parsed.file.kind === 'window') {
      const { name } = record;
      return { kind: 'export', name, path, snapshot, file: parsed.file, isFinal: true, isReadAgain: true };
    }
    // Somebody removed the file: its record must not hide an older one.
    writer.write({ kind: 'file gone', file: record.number, name: record.name }, () =>
      clearDestination(writer.db, record.number),
    );
  }
  return null;
}

/** After an error behind the commit, the window was read: only the move of its file is still to come. */
function afterError(files: FileStore, wanted: RequestOf<'reset'>, error: string): RequestOutcome {
  const committed = recordsInTaken(files).find(
    (record) => record.export === wanted.export && record.window_start === wanted.window_start,
  );
  if (committed === undefined) return { ok: false, reason: error };
  const { name, outcome } = committed;
  return { ok: true, reset: { file: name, outcome, reason: `the file could not be moved yet: ${error}` } };
}

export function expect(writer: StreamWriter, request: RequestOf<'expect'>): RequestOutcome {
  const { export: exportName, window_start } = request;
  let forgotten = 0;
  writer.write({ kind: 'expect windows', export: exportName, from: formatMs(window_start) }, () => {
    forgotten = expectFrom(writer.db, exportName, window_start);
  });
  return { ok: true, expected: { forgotten } };
}

export function gap(writer: StreamWriter, request: RequestOf<'gap'>, now: Now): RequestOutcome {
  const { export: exportName, window_start, status } = request;
  const known = findWindow(writer.db, exportName, window_start);
  if (known !== undefined)
    return { ok: false, reason: `window ${formatMs(window_start)} of ${exportName} is ${known.status}` };
  writer.write({ kind: 'gap', export: exportName, window: formatMs(window_start) }, () =>
    setWindow(writer.db, { export: exportName, window_start, status, since: now(), file: null }),
  );
  return { ok: true };
}
