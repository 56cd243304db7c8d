/**
 * What commands ask of the ingest thread, through `ingest_request` in access.db: the running appliance serves it, or the
 * command itself if none runs. A request stays open until it has an outcome, over restarts too; but a crash may lose it.
 */
import type { ExportName } from '../../detection/content-type.ts';
import { noteOperation } from '../../history/operation-note.ts';
import { type Database, writing } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import type { WindowStatus } from '../../windows/ledger.ts';
import type { ApplyCounts } from '../apply/apply-rows.ts';
import type { RemovedRows } from '../apply/remove-rows.ts';
import type { AccessConnection } from '../threads/access-connection.ts';
import type { Log } from '../threads/ingest-messages.ts';

export type IngestRequest =
  /** Reads archived files again that were first applied in `[from, to)`, epoch milliseconds. */
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }
  /** Reads the newest held file of a failed or abandoned window, or else the failed one again. */
  | {
      readonly kind: 'reset';
      readonly export: ExportName;
      readonly window_start: number;
      /** The status of the window at the time of the request. */
      readonly from: ResettableStatus;
    }
  /** Sets from which window on those of an export are expected. */
  | { readonly kind: 'expect'; readonly export: ExportName; readonly window_start: number }
  /** Of a lab: records an unknown window as if its file had not come in time. */
  | {
      readonly kind: 'gap';
      readonly export: ExportName;
      readonly window_start: number;
      readonly status: Extract<WindowStatus, 'missing' | 'abandoned'>;
    }
  /**
   * Deletes the rows of removed subscriptions: of those with an open removal, whether or not it names them. If the request
   * is lost, the ingest thread deletes them all the same.
   */
  | { readonly kind: 'remove'; readonly subscriptions: readonly number[] };

/** Files of such a window are held. */
export type ResettableStatus = Extract<WindowStatus, 'failed' | 'abandoned'>;

export interface ReplayCounts extends ApplyCounts {
  files: number;
  rows: number;
  /** Files that are no longer in the archive, or that the present settings do not accept. */
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
  /** What was deleted since the last start of the request; and why the log still has rows of it, or null. */
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

/** Also adds it to the audit trail. */
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

/** The progress of a request, and its outcome once it has one. */
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

export type HandleRequest = (
  request: IngestRequest,
  tell: (progress: string) => void,
) => Promise<RequestOutcome>;

/** Notes the progress and the outcome of a request. @throws only errors of the machine, and Stopping */
export async function serveRequest(
  access: AccessConnection,
  { id, request }: OpenRequest,
  handle: HandleRequest,
  log: Log,
): Promise<void> {
  const note = (sql: string, values: object) =>
    access.use((db) => writing(db, () => db.prepare(sql).run(values)));
  let toldAtMs = 0;
  const outcome = await handle(request, (progress) => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < PROGRESS_EVERY_MS) return;
    toldAtMs = nowMs;
    note(SET_PROGRESS, { id, progress });
  });
  note(SET_OUTCOME, { id, outcome: JSON.stringify(outcome) });
  log('info', 'request served', { request: withTimes(request), outcome });
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
