/** What ingest needs to know of `access.db`: which streams there are, who is licensed, whether it is paused. */
import {
  type ContentType,
  EXPORT_OF_CONTENT_TYPE,
  type ExportName,
  streamNumber,
} from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';

const SELECT_SUBSCRIPTIONS = `
  SELECT subscription.id, subscription.content_types, account.print_metadata
  FROM subscription JOIN account ON account.id = subscription.account_id`;

const SELECT_PAUSE = 'SELECT paused_at FROM ingest_pause WHERE id = 1';

export interface Subscribers {
  readonly streams: readonly number[];
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
      .filter((contentType) => isEnabled(EXPORT_OF_CONTENT_TYPE[contentType]))
      .map((contentType) => streamNumber(row.id, contentType));
  });
  return { streams, licensed: rows.filter((row) => row.print_metadata === 1).map((row) => row.id) };
}

/** Since when ingest is paused, epoch milliseconds; null while it is not. */
export function readPause(access: Database): number | null {
  return access.prepare<unknown[], { paused_at: number }>(SELECT_PAUSE).get()?.paused_at ?? null;
}
