/** How far the data goes: the head of the stream, and up to when exports were read (contract: ChangesPage, `as_of`). */
import { CONTENT_TYPES, type ContentType, perContentType, TYPE_RULES } from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';
import { formatMs, WINDOW_MS } from '../time.ts';
import { preparedOnce } from './statements.ts';

/** All of one moment, even where no transaction is open: it is one statement. */
export interface StreamHead {
  /** Position of the last row of all streams, those that were removed included; 0 when there is none. */
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

/** What was read last over each connection, and the version of the database that it is at least as new as. */
const kept = new WeakMap<Database, { readonly version: number | undefined; readonly head: StreamHead }>();

/** Reads it anew where anything was committed since: to ask for that takes a quarter of the time. */
export function readStreamHead(db: Database): StreamHead {
  // What a connection commits itself is no new version to it.
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
 * The earliest of what the exports read have finished, epoch milliseconds; null when one has finished nothing.
 *
 * @param contentTypes those that are read, without any whose export is switched off
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
 * `as_of` as an answer shows it; null while there is none. A window never ends in the future, but the clock may have
 * been set back since: a client starts the stream with this as `since`, and one that lies in the future is refused.
 */
export function formatAsOf(asOf: number | null, nowMs: number): string | null {
  return asOf === null ? null : formatMs(Math.min(asOf, nowMs));
}

/** The names of exports are constants of the program; the plan is the same as with bound ones. */
function newestDone(contentType: ContentType): string {
  return `(SELECT max(window_start) FROM export_window
      WHERE export = '${TYPE_RULES[contentType].export}' AND status = 'done')`;
}

function windowEndMs(startMs: number | null | undefined): number | null {
  return startMs === null || startMs === undefined ? null : startMs + WINDOW_MS;
}
