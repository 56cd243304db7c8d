/**
 * What commands ask of the one who ingests, through `ingest_request` in access.db: a running appliance does it,
 * or the command itself when none runs. A request stays open until it has an outcome, over restarts too.
 */
import { join } from 'node:path';
import type { ExportName } from '../../detection/content-type.ts';
import { noteOperation } from '../../history/operation-note.ts';
import { type Database, writing } from '../../store/database.ts';
import { isThere } from '../../store/folder.ts';
import { formatMs } from '../../time.ts';
import { expectFrom, findWindow, setWindow, type WindowStatus } from '../../windows/ledger.ts';
import { type ApplyCounts, NO_COUNTS, sumOf } from '../apply/apply-rows.ts';
import { applyInBounds, REREAD } from '../apply/backfill.ts';
import {
  archivedFiles,
  clearDestination,
  type FileRecord,
  filesLeft,
  saveFile,
} from '../apply/file-record.ts';
import { finishRemovals, type RemovedRows, removeSubscription } from '../apply/remove-rows.ts';
import { ingestWindowFile, type WaitingWindow } from '../apply/window-file.ts';
import { noteAgain, recordsInTaken } from '../drop/finished-file.ts';
import { judgeName, switchedOff } from '../format/file-name.ts';
import { isFileError, plainError } from '../threads/thread-errors.ts';
import { isEnabled, readingOrder, type Workshop } from '../threads/workshop.ts';

export type IngestRequest =
  /** Reads archived files again; the bounds are of the time at which a file was first applied, epoch milliseconds. */
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }
  /** Reads the newest held file of a failed or abandoned window, or the failed one again, if it still is. */
  | {
      readonly kind: 'reset';
      readonly export: ExportName;
      readonly window_start: number;
      /** The status in which the window was when it was asked for. */
      readonly from: ResettableStatus;
    }
  /** Sets from which window on those of an export are expected. */
  | { readonly kind: 'expect'; readonly export: ExportName; readonly window_start: number }
  /** Of a lab: notes a window, of which nothing was known, as if its file had not come in time. */
  | {
      readonly kind: 'gap';
      readonly export: ExportName;
      readonly window_start: number;
      readonly status: Extract<WindowStatus, 'missing' | 'abandoned'>;
    }
  /** Deletes what is there of subscriptions that were removed. */
  | { readonly kind: 'remove'; readonly subscriptions: readonly number[] };

/** Of a window whose files are held until somebody asks for them. */
export type ResettableStatus = Extract<WindowStatus, 'failed' | 'abandoned'>;

export interface ReplayCounts extends ApplyCounts {
  files: number;
  rows: number;
  /** Files that are no longer in the archive, or can no longer be read under the settings of today. */
  unreadable: { file: string; reason: string }[];
}

export type RequestOutcome =
  | { readonly ok: true; readonly replay: ReplayCounts }
  | {
      readonly ok: true;
      readonly reset: { readonly file: string; readonly outcome: string; readonly reason: string | null };
    }
  /** How many windows before the start are no longer missing or abandoned. */
  | { readonly ok: true; readonly expected: { readonly forgotten: number } }
  | { readonly ok: true }
  /** What was deleted since it was begun, or begun again; and why the log still has rows of it, or null. */
  | { readonly ok: true; readonly removed: RemovedRows; readonly left_in_log: string | null }
  | { readonly ok: false; readonly reason: string };

export interface OpenRequest {
  readonly id: number;
  readonly request: IngestRequest;
}

const SELECT_OPEN = 'SELECT id, request FROM ingest_request WHERE outcome IS NULL ORDER BY id LIMIT 1';
const INSERT_REQUEST = 'INSERT INTO ingest_request (request, created_at) VALUES (:request, :created_at)';
const SELECT_REQUEST = 'SELECT progress, outcome FROM ingest_request WHERE id = ?';
const SET_PROGRESS = 'UPDATE ingest_request SET progress = :progress WHERE id = :id';
const SET_OUTCOME = 'UPDATE ingest_request SET outcome = :outcome WHERE id = :id';

const PROGRESS_EVERY_MS = 500;

/** It stands in the audit trail, too. */
export function addRequest(access: Database, request: IngestRequest, nowMs: number): number {
  return writing(access, () => {
    const row = { request: JSON.stringify(request), created_at: nowMs };
    const { lastInsertRowid } = access.prepare(INSERT_REQUEST).run(row);
    noteOperation(access, request, nowMs);
    return Number(lastInsertRowid);
  });
}

export function nextRequest(access: Database): OpenRequest | null {
  const row = access.prepare<unknown[], { id: number; request: string }>(SELECT_OPEN).get();
  return row === undefined ? null : { id: row.id, request: JSON.parse(row.request) };
}

/** How far a request is, and its outcome once it has one. */
export function requestState(
  access: Database,
  id: number,
): { progress: string | null; outcome: RequestOutcome | null } {
  const row = access
    .prepare<unknown[], { progress: string | null; outcome: string | null }>(SELECT_REQUEST)
    .get(id);
  const outcome = row?.outcome ?? null;
  return { progress: row?.progress ?? null, outcome: outcome === null ? null : JSON.parse(outcome) };
}

/** Does what was asked for and notes the outcome. Only faults of the machine, and Stopping, are thrown. */
export async function serveRequest(workshop: Workshop, { id, request }: OpenRequest): Promise<void> {
  let toldAtMs = 0;
  const tell = (progress: string) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < PROGRESS_EVERY_MS) return;
    toldAtMs = nowMs;
    writing(workshop.access, () => workshop.access.prepare(SET_PROGRESS).run({ id, progress }));
  };
  const outcome = await outcomeOf(workshop, request, tell);
  writing(workshop.access, () =>
    workshop.access.prepare(SET_OUTCOME).run({ id, outcome: JSON.stringify(outcome) }),
  );
  workshop.log('info', 'request served', { request: withTimes(request), outcome });
}

/** A request with the time of its window as text, for the log. */
function withTimes(request: IngestRequest): object {
  switch (request.kind) {
    case 'reset':
    case 'expect':
    case 'gap':
      return { ...request, window_start: formatMs(request.window_start) };
    case 'replay':
    case 'remove':
      return request;
  }
}

function outcomeOf(
  workshop: Workshop,
  request: IngestRequest,
  tell: (progress: string) => void,
): Promise<RequestOutcome> {
  switch (request.kind) {
    case 'replay':
      return replay(workshop, request, tell);
    case 'reset':
      return reset(workshop, request).catch((error) => ({ ok: false, reason: reasonOfFile(error) }));
    case 'expect':
      return expect(workshop, request);
    case 'gap':
      return gap(workshop, request);
    case 'remove':
      return remove(workshop, request.subscriptions, tell);
  }
}

async function remove(
  workshop: Workshop,
  subscriptions: readonly number[],
  tell: (progress: string) => void,
): Promise<RequestOutcome> {
  let removed: RemovedRows = { detections: 0, versions: 0 };
  for (const subscription of subscriptions) {
    const operation = { kind: 'remove', subscription };
    const { detections, versions } = await removeSubscription(workshop, subscription, operation, tell);
    removed = { detections: removed.detections + detections, versions: removed.versions + versions };
  }
  return { ok: true, removed, left_in_log: await finishRemovals(workshop, tell) };
}

async function expect(
  { db, writer }: Workshop,
  request: Extract<IngestRequest, { kind: 'expect' }>,
): Promise<RequestOutcome> {
  const { export: exportName, window_start } = request;
  let forgotten = 0;
  const operation = { kind: 'expect windows', export: exportName, from: formatMs(window_start) };
  writer.commit(writer.begin(), operation, () => {
    forgotten = expectFrom(db, exportName, window_start);
  });
  return { ok: true, expected: { forgotten } };
}

async function gap(
  { db, writer, now }: Workshop,
  { export: exportName, window_start, status }: Extract<IngestRequest, { kind: 'gap' }>,
): Promise<RequestOutcome> {
  const known = findWindow(db, exportName, window_start);
  if (known !== undefined)
    return { ok: false, reason: `window ${formatMs(window_start)} of ${exportName} is ${known.status}` };
  const operation = { kind: 'gap', export: exportName, window: formatMs(window_start) };
  writer.commit(writer.begin(), operation, () =>
    setWindow(db, { export: exportName, window_start, status, since: now(), file: null }),
  );
  return { ok: true };
}

async function replay(
  workshop: Workshop,
  bounds: { readonly from: number; readonly to: number },
  tell: (progress: string) => void,
): Promise<RequestOutcome> {
  const counts: ReplayCounts = { files: 0, rows: 0, ...NO_COUNTS, unreadable: [] };
  const files = archivedFiles(workshop.db, bounds.from, bounds.to);
  for (const [index, record] of files.entries()) {
    tell(`file ${index + 1} of ${files.length}`);
    const reason = await replayFile(workshop, record, counts).catch(reasonOfFile);
    if (reason === null) counts.files += 1;
    else counts.unreadable.push({ file: record.destination ?? record.name, reason });
    await workshop.between();
  }
  return { ok: true, replay: counts };
}

/** @returns why the file could not be read; null when it was */
async function replayFile(
  workshop: Workshop,
  record: FileRecord,
  counts: ReplayCounts,
): Promise<string | null> {
  const judged = judgeName(record.name);
  const path = record.destination === null ? null : join(workshop.drop.root, record.destination);
  if (judged.kind !== 'export' || path === null || !isThere(path))
    return 'the file is no longer in the archive';
  const order = readingOrder(workshop, path, judged.file, REREAD);
  const operation = { kind: 'replay', file: record.number, name: record.name };
  const name = record.destination ?? record.name;
  const result = await applyInBounds(workshop, name, order, operation, (_, applied) => {
    Object.assign(counts, sumOf(counts, applied));
  });
  counts.rows += result.counts.rows;
  if (result.kind === 'read') noteUnknownRows(workshop, record, result.counts.unknown_rows);
  if (result.kind === 'read') return null;
  return result.kind === 'bad' ? 'the file does not match the export format' : result.reason;
}

/** A fault that came after the commit keeps the file only from its folder, for a while. */
function afterFault(
  workshop: Workshop,
  wanted: { readonly export: ExportName; readonly window_start: number },
  fault: string,
): RequestOutcome {
  const committed = recordsInTaken(workshop).find(
    (record) => record.export === wanted.export && record.window_start === wanted.window_start,
  );
  if (committed === undefined) return { ok: false, reason: fault };
  const { name, outcome } = committed;
  return { ok: true, reset: { file: name, outcome, reason: `the file could not be moved yet: ${fault}` } };
}

/** A file that cannot be read or moved is told to whoever asked, and keeps nothing else from being done. */
function reasonOfFile(error: unknown): string {
  if (!isFileError(error)) throw error;
  return plainError(error).message;
}

/** What a record says of rows without a subscription, and with it the alert, follows the last reading. */
function noteUnknownRows(
  workshop: Workshop,
  record: FileRecord,
  unknownRows: Readonly<Record<string, number>>,
): void {
  if (JSON.stringify(record.report.unknown_rows ?? {}) === JSON.stringify(unknownRows)) return;
  const operation = { kind: 'replay', file: record.number, name: record.name };
  workshop.writer.commit(workshop.writer.begin(), operation, () =>
    saveFile(workshop.db, { ...record, report: { ...record.report, unknown_rows: unknownRows } }),
  );
}

async function reset(
  workshop: Workshop,
  request: Extract<IngestRequest, { kind: 'reset' }>,
): Promise<RequestOutcome> {
  const window = `window ${formatMs(request.window_start)} of ${request.export}`;
  const status = findWindow(workshop.db, request.export, request.window_start)?.status;
  if (status !== request.from)
    return {
      ok: false,
      reason: `${window} is now ${status ?? 'unknown'}, so no file was read. To list windows, run: wirewatch window list`,
    };
  for (;;) {
    const [record] = filesLeft(workshop.db, request.export, request.window_start);
    if (record === undefined || record.destination === null)
      return { ok: false, reason: `held/ and failed/ contain no file for ${window}. Drop one.` };
    const path = join(workshop.drop.root, record.destination);
    const judged = judgeName(record.name);
    if (!isThere(path) || judged.kind !== 'export' || judged.file.kind !== 'window') {
      // Somebody took the file away: the record must not stand in the way of an older one.
      const operation = { kind: 'file gone', file: record.number, name: record.name };
      workshop.writer.commit(workshop.writer.begin(), operation, () =>
        clearDestination(workshop.db, record.number),
      );
      continue;
    }
    if (!isEnabled(workshop, request.export)) return { ok: false, reason: switchedOff(request.export) };
    const waiting: WaitingWindow = {
      kind: 'export',
      name: record.name,
      path,
      look: workshop.drop.look(path),
      file: judged.file,
      isFinal: true,
      replaces: record.number,
    };
    const dealt = await ingestWindowFile(workshop, waiting).catch(reasonOfFile);
    if (typeof dealt === 'string') return afterFault(workshop, request, dealt);
    if (dealt === null) return { ok: false, reason: `${path} changed while it was being read. Try again.` };
    workshop.dealtWith(dealt);
    for (const left of filesLeft(workshop.db, request.export, request.window_start))
      noteAgain(workshop, left);
    const reason = dealt.report.reason ?? null;
    return { ok: true, reset: { file: dealt.destination ?? dealt.name, outcome: dealt.outcome, reason } };
  }
}
