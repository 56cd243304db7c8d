/** The parameters of the change stream (GET /v1/detections/changes). */
import { Type } from '@sinclair/typebox';
import { SINCE_AGE_MAX_MS } from '../limits/api-limits.ts';
import type { StreamPosition } from '../log/version-epoch.ts';
import { type DocumentedTable, LIMIT, LIST_PARAMETERS } from './filters.ts';
import { invalid, readParameters } from './parameters.ts';
import { INSTANT, text } from './value-kinds.ts';

export const CHANGES_PARAMETERS = {
  cursor: {
    ...text(Type.Ref('StreamCursor')),
    description: '`next_cursor` from a previous response of this endpoint. Send either `cursor` or `since`.',
    example: 'vEEz9_nMB-9gd7TQcKD5Tw',
  },
  since: {
    ...INSTANT,
    description:
      'A time with `Z` or an offset and up to nine fractional digits. It must not be in the future or more than 31 x 24 hours ago. The page starts at the first change delivered at or after it. Send either `since` or `cursor`.',
    example: '2026-11-21T10:00:00Z',
  },
  limit: LIMIT,
  ...LIST_PARAMETERS,
} satisfies DocumentedTable;

export type ChangesParameters = ReturnType<typeof parseChanges>;

/** Where in the stream a page starts: after a position, or with the first change delivered at or after a time. */
export type StreamStart = ChangesParameters['start'];

/**
 * @param decodeCursor throws for one that was never given
 * @param lastEventId a cursor with which an event stream goes on: `since` does not count then
 * @throws Refused `invalid_request`
 */
export function parseChanges(
  raw: string,
  nowMs: number,
  decodeCursor: (cursor: string) => StreamPosition,
  lastEventId: string | null = null,
) {
  const { cursor: given, since, ...rest } = readParameters(raw, CHANGES_PARAMETERS);
  if (given !== null && since !== null)
    throw invalid('since, cursor: mutually exclusive; send only one of them');
  if (given !== null && lastEventId !== null && given !== lastEventId)
    throw invalid('cursor, Last-Event-ID: they differ; send only one of them');
  const cursor = lastEventId ?? given;
  if (cursor !== null) return { start: { kind: 'after' as const, ...decodeCursor(cursor) }, ...rest };
  if (since === null)
    throw invalid(
      'since, cursor: one of them is required. Send since to start the stream, then the next_cursor of each response as cursor',
    );
  if (since > nowMs) throw invalid('since: must not be in the future');
  if (since < nowMs - SINCE_AGE_MAX_MS)
    throw invalid(
      'since: must be within the last 31 days (31 x 24 hours). For older detections, use GET /v1/detections',
    );
  return { start: { kind: 'since' as const, since_ms: since }, ...rest };
}
