/** GET /v1/detections/changes: the change stream. */
import type { Credential } from '../../auth/authorize.ts';
import type { ContentType } from '../../detection/content-type.ts';
import { STREAMS_MAX } from '../../limits/contract-limits.ts';
import { formatAsOf } from '../../query/as-of.ts';
import { jsonBaseUrl } from '../../query/base-url.ts';
import {
  type ChangesPage,
  type ChangesQuery,
  heldPage,
  isBehindLostEnd,
  readChangesPage,
} from '../../query/changes-page.ts';
import { parseChangesParameters } from '../../query/changes-parameters.ts';
import type { RecentDeliveries } from '../../query/delivery.ts';
import { invalid } from '../../query/parameters.ts';
import type { StreamCursors } from '../../query/stream-cursor.ts';
import { selectStreams } from '../../query/streams.ts';
import type { Database } from '../../store/database.ts';
import type { Answer, KeyedCall, KeyedRoute } from '../routes.ts';

export interface ChangesSources {
  readonly detections: () => Database;
  readonly cursors: StreamCursors;
  readonly recentDeliveries: RecentDeliveries;
  readonly enabledContentTypes: ReadonlySet<ContentType>;
  readonly baseUrl: () => string;
  /** Told of an authentic cursor that the log never gave out. */
  readonly onEndLost: (position: number) => void;
}

const DATA_START = Buffer.from('{"data":[');

export function changesRoute(sources: ChangesSources): KeyedRoute {
  return {
    path: '/v1/detections/changes',
    method: 'GET',
    head: false,
    access: 'key',
    scope: 'detections:read',
    answer: (call, credential) => answerChanges(sources, call, credential),
  };
}

function answerChanges(sources: ChangesSources, call: KeyedCall, credential: Credential): Answer {
  const { cursors } = sources;
  const asked = parseChangesParameters(call.query, call.nowMs, cursors.decode);
  const { streams, content_types } = selectStreams(
    credential.subscriptions,
    asked.selection,
    sources.enabledContentTypes,
  );
  if (streams.length > STREAMS_MAX) {
    throw invalid(
      `subscription_id, content_type: the request covers ${streams.length} streams; at most ${STREAMS_MAX} are allowed. ` +
        'Name fewer subscriptions, or one content type',
    );
  }
  call.requireAllowance();
  const page = pageOf(sources, {
    streams,
    content_types,
    filters: asked.filters,
    start: asked.start,
    limit: asked.limit,
    projection: asked.projection,
    baseUrl: jsonBaseUrl(sources.baseUrl()),
    recentDeliveries: sources.recentDeliveries,
  });
  const body = renderPage(page, cursors.encode(page.position), call.nowMs);
  return { status: 200, rows: page.rows, position: page.position, body };
}

function pageOf({ detections, onEndLost }: ChangesSources, query: ChangesQuery): ChangesPage {
  const db = detections();
  if (!isBehindLostEnd(db, query)) return readChangesPage(db, query);
  const page = heldPage(db, query);
  onEndLost(page.position);
  return page;
}

function renderPage(
  { data, rows, has_more, as_of_ms }: ChangesPage,
  cursor: string,
  nowMs: number,
): string | Buffer[] {
  const asOf = JSON.stringify(formatAsOf(as_of_ms, nowMs));
  const end = `],"next_cursor":"${cursor}","has_more":${has_more},"as_of":${asOf}}`;
  return rows === 0 ? `{"data":[${end}` : [DATA_START, data, Buffer.from(end)];
}
