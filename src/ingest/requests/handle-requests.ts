/** Which work serves which request; those about a window: read its file after all, expect windows from it on, a lab's gap. */
import { reasonOfFile } from '../../drop/file-errors.ts';
import { unlistable, waitingFiles } from '../../drop/waiting-names.ts';
import { recordedFile, switchedOff } from '../../exports/file-name.ts';
import { inTurns } from '../../log/compact.ts';
import { failed, Refused } from '../../refused.ts';
import { formatMs } from '../../time.ts';
import { dismissWindow, expectFrom, findWindow, setWindow } from '../../windows/ledger.ts';
import { compactNow, serveRemovals } from '../apply/remove-rows.ts';
import { ingestWindowFile, type WaitingExport } from '../apply/window-file.ts';
import { clearDestination, filesLeft } from '../files/file-record.ts';
import { type Ingest, recordedIn, recordsInTaken } from '../files/finished-file.ts';
import type { Answers, IngestRequest, Kind, RequestOf, Tell } from '../threads/ingest-messages.ts';
import { replay } from './replay.ts';

const HANDLERS: {
  [Of in Kind]: (ingest: Ingest, request: RequestOf<Of>, tell: Tell) => Answers[Of] | Promise<Answers[Of]>;
} = {
  ...{ replay, dismiss, expect, gap },
  reset: (ingest, request) => reset(ingest, request).catch(refusedForFile),
  remove: (ingest, _, tell) => serveRemovals(ingest, tell),
  compact: (ingest, _, tell) => compactNow(ingest, { between: inTurns(ingest.between), tell }),
};

/** @throws Refused `failed` with the reason if it cannot be done */
export async function handleRequest(ingest: Ingest, request: IngestRequest, tell: Tell) {
  const isFromDrop = request.kind === 'replay' || request.kind === 'reset';
  const unlisted = isFromDrop ? unlistable(ingest.drop.root) : null;
  if (unlisted !== null) throw failed(unlisted);
  return HANDLERS[request.kind](ingest, request as never, tell);
}

/** @throws Refused for an error of one file; any other as it is */
function refusedForFile(error: unknown): never {
  throw error instanceof Refused ? error : failed(reasonOfFile(error));
}

async function reset(ingest: Ingest, request: RequestOf<'reset'>): Promise<Answers['reset']> {
  const { exports, onProcessed } = ingest;
  const { db } = ingest.writer;
  const window = `window ${formatMs(request.window_start)} of ${request.export}`;
  const status = findWindow(db, request.export, request.window_start)?.status ?? 'unknown';
  const next = 'To list windows, run: wirewatch window list';
  if (status !== request.from) throw failed(`${window} is now ${status}, so no file was read. ${next}`);
  if (!exports.isEnabled(request.export)) throw failed(switchedOff(request.export));
  const waiting = (await droppedFile(ingest, request)) ?? failedFile(ingest, request);
  if (waiting === null)
    throw failed(`neither the drop folder nor failed/ has a file for ${window}. Drop one.`);
  if (waiting === 'still written')
    throw failed(`the file for ${window} may still be written. Try again in a minute.`);
  const processed = await ingestWindowFile(ingest, waiting).catch(reasonOfFile);
  if (typeof processed === 'string') return afterError(ingest, request, processed);
  if (processed === null) throw failed(`${waiting.path} changed while it was being read. Try again.`);
  onProcessed(processed);
  const { name, destination, outcome, report } = processed;
  return { file: destination ?? name, outcome, reason: report.reason ?? null };
}

/** The newest file in the drop folder for a window; null: there is none. The others are then read as corrections. */
async function droppedFile({ drop, writer, now }: Ingest, request: RequestOf<'reset'>) {
  const known = { isRecorded: recordedIn(writer.db), heldBy: () => null };
  const [newest] = waitingFiles(drop, known)
    .exports.flatMap((dropped) => {
      const { file } = dropped;
      if (file.export !== request.export || file.window_start !== request.window_start) return [];
      const snapshot = drop.snapshot(dropped.path);
      return typeof snapshot === 'string' ? [] : { dropped, snapshot };
    })
    .sort((a, b) => (a.snapshot.mtimeNs > b.snapshot.mtimeNs ? -1 : 1));
  if (newest === undefined) return null;
  const settled = await drop.settled(newest.dropped, newest.snapshot, now());
  return settled?.kind === 'export' ? settled : 'still written';
}

/** The newest failed file of a window, of those that are still there; null: there is none. */
function failedFile({ drop, writer }: Ingest, request: RequestOf<'reset'>): WaitingExport | null {
  for (const record of filesLeft(writer.db, request.export, request.window_start)) {
    const path = record.destination ?? '';
    const file = recordedFile(record);
    const snapshot = drop.snapshot(path);
    if (typeof snapshot !== 'string' && file !== null) {
      const { name, number: takenAs } = record;
      return { kind: 'export', name, path, snapshot, file, isFinal: true, takenAs };
    }
  }
  return null;
}

/** After an error behind the commit, the window was read: only the move of its file is still to come. */
function afterError(files: Ingest, wanted: RequestOf<'reset'>, error: string): Answers['reset'] {
  const committed = recordsInTaken(files).find(
    (record) => record.export === wanted.export && record.window_start === wanted.window_start,
  );
  if (committed === undefined) throw failed(error);
  const { name, outcome } = committed;
  return { file: name, outcome, reason: `the file could not be moved yet: ${error}` };
}

function dismiss({ writer, now }: Ingest, { export: exportName, window_start }: RequestOf<'dismiss'>) {
  const status = findWindow(writer.db, exportName, window_start)?.status ?? 'unknown';
  if (status !== 'failed') throw failed(`window ${formatMs(window_start)} of ${exportName} is now ${status}`);
  writer.write({ kind: 'dismiss', export: exportName, window: formatMs(window_start) }, () => {
    dismissWindow(writer.db, exportName, window_start, now());
    // What is left in failed/ concerns nobody any more.
    for (const { number } of filesLeft(writer.db, exportName, window_start))
      clearDestination(writer.db, number);
  });
  return null;
}

function expect({ writer }: Ingest, { export: exportName, window_start }: RequestOf<'expect'>) {
  let forgotten = 0;
  writer.write({ kind: 'expect windows', export: exportName, from: formatMs(window_start) }, () => {
    forgotten = expectFrom(writer.db, exportName, window_start);
  });
  return { forgotten };
}

function gap({ writer, now }: Ingest, { export: exportName, window_start, status }: RequestOf<'gap'>) {
  const known = findWindow(writer.db, exportName, window_start);
  if (known !== undefined)
    throw failed(`window ${formatMs(window_start)} of ${exportName} is ${known.status}`);
  writer.write({ kind: 'gap', export: exportName, window: formatMs(window_start) }, () =>
    setWindow(writer.db, { export: exportName, window_start, status, since: now(), file: null }),
  );
  return null;
}
