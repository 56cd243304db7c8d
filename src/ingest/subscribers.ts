/** What ingest reads from `access.db` for a file: which streams there are, and who is licensed. */
import {
  type ContentType,
  type ExportName,
  type StreamName,
  streamName,
  TYPE_RULES,
} from '../detection/content-type.ts';
import type { Database } from '../store/database.ts';

const SELECT_SUBSCRIPTIONS = `
  SELECT subscription.id, subscription.content_types, account.print_metadata
  FROM subscription JOIN account ON account.id = subscription.account_id`;

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
