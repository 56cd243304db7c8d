/** The head of the streams, and the time up to which exports were read. */
import { CONTENT_TYPES, type ContentType, perContentType, TYPE_RULES } from '../detection/content-type.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { formatMs, WINDOW_MS } from '../time.ts';

/** Read by one statement, so consistent without a transaction. */
export interface StreamHead {
  /** Of the last row of all streams, removed ones included; 0: no rows. */
  readonly position: number;
  /** End of the newest finished window of each content type's export, epoch milliseconds; null when none is. */
  readonly newest_done_ms: Readonly<Record<ContentType, number | null>>;
}

export const STREAM_HEAD = `
  SELECT (SELECT max(position) FROM stream) AS head,
    ${CONTENT_TYPES.map((contentType) => `${newestDone(contentType)} AS ${contentType}`).join(',\n    ')}`;

interface StreamHeadRow extends Readonly<Record<ContentType, number | null>> {
  readonly head: number | null;
}

const streamHead = preparedOnce<StreamHeadRow>(STREAM_HEAD);
/** Differs when another connection has committed since (https://sqlite.org/pragma.html#pragma_data_version). */
const dataVersion = preparedOnce<{ data_version: number }>('PRAGMA data_version');

/** The last result of each connection, and the data version that it is at least as new as. */
const kept = new WeakMap<Database, { readonly version: number | undefined; readonly head: StreamHead }>();

/** Reads again only where something was committed since: to check that takes a quarter of the time. */
export function readStreamHead(db: Database): StreamHead {
  // A connection's own commits do not change its data version.
  if (!db.readonly) return selectStreamHead(db);
  const version = dataVersion(db).get()?.data_version;
  const last = kept.get(db);
  if (last !== undefined && last.version === version) return last.head;
  const read = selectStreamHead(db);
  kept.set(db, { version, head: read });
  return read;
}

function selectStreamHead(db: Database): StreamHead {
  const row = streamHead(db).get();
  return {
    position: row?.head ?? 0,
    newest_done_ms: perContentType((contentType) => windowEndMs(row?.[contentType])),
  };
}

/**
 * The earliest end of the newest finished windows, epoch milliseconds; null while an export has none.
 *
 * @param contentTypes those that the request reads, without types whose export is switched off
 */
export function asOfMs({ newest_done_ms }: StreamHead, contentTypes: readonly ContentType[]): number | null {
  let earliest: number | null = null;
  for (const contentType of contentTypes) {
    const done = newest_done_ms[contentType];
    if (done === null) return null;
    if (earliest === null || done < earliest) earliest = done;
  }
  return earliest;
}

/**
 * `as_of` in an answer. Never in the future, though the clock may have been set back: clients send it as `since`, which
 * must not be in the future.
 */
export function formatAsOf(asOf: number | null, nowMs: number): string | null {
  return asOf === null ? null : formatMs(Math.min(asOf, nowMs));
}

/** Export names are constants; the plan is the same as with bound values. */
function newestDone(contentType: ContentType): string {
  return `(SELECT max(window_start) FROM export_window
      WHERE export = '${TYPE_RULES[contentType].export}' AND status = 'done')`;
}

function windowEndMs(startMs: number | null | undefined): number | null {
  return startMs === null || startMs === undefined ? null : startMs + WINDOW_MS;
}
