/** What ingest has in `access.db`: which streams there are, who is licensed, whether it is paused. */
import {
  type ContentType,
  type ExportName,
  type StreamName,
  streamName,
  TYPE_RULES,
} from '../../detection/content-type.ts';
import { type Database, writing } from '../../store/database.ts';

const SELECT_SUBSCRIPTIONS = `
  SELECT subscription.id, subscription.content_types, account.print_metadata
  FROM subscription JOIN account ON account.id = subscription.account_id`;

const INSERT_PAUSE = 'INSERT INTO ingest_pause (id, paused_at) VALUES (1, :paused_at) ON CONFLICT DO NOTHING';
const DELETE_PAUSE = 'DELETE FROM ingest_pause';
const SELECT_PAUSE = 'SELECT paused_at FROM ingest_pause WHERE id = 1';

export interface Subscribers {
  readonly streams: readonly StreamName[];
  /** Subscriptions whose account may see the addresses of print articles. */
  readonly licensed: readonly number[];
}

interface Row {
  readonly id: number;
  readonly content_types: string;
  readonly print_metadata: number;
}

export function readSubscribers(
  access: Database,
  isEnabled: (exportName: ExportName) => boolean,
): Subscribers {
  const rows = access.prepare<unknown[], Row>(SELECT_SUBSCRIPTIONS).all();
  const streams = rows.flatMap((row) => {
    const contentTypes: ContentType[] = JSON.parse(row.content_types);
    return contentTypes
      .filter((contentType) => isEnabled(TYPE_RULES[contentType].export))
      .map((contentType) => streamName(row.id, contentType));
  });
  return { streams, licensed: rows.filter((row) => row.print_metadata === 1).map((row) => row.id) };
}

/** Since when ingest is paused, epoch milliseconds; null while it is not. */
export function readPause(access: Database): number | null {
  return access.prepare<unknown[], { paused_at: number }>(SELECT_PAUSE).get()?.paused_at ?? null;
}

/** Pauses ingest, or leaves it paused; @returns since when it is, epoch milliseconds */
export function pauseIngest(access: Database, nowMs: number): number {
  return writing(access, () => {
    access.prepare(INSERT_PAUSE).run({ paused_at: nowMs });
    return readPause(access) ?? nowMs;
  });
}

/** Ends a pause; @returns since when it was, null when there was none */
export function resumeIngest(access: Database): number | null {
  return writing(access, () => {
    const pausedAt = readPause(access);
    access.prepare(DELETE_PAUSE).run();
    return pausedAt;
  });
}
