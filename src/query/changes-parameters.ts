/** The parameters of the change stream (contract: GET /v1/detections/changes). */
import { SINCE_AGE_MAX_MS } from '../limits/contract-limits.ts';
import {
  LIST_PARAMETERS,
  readFilters,
  readLimit,
  readSelection,
  readView,
  type StreamSelection,
} from './common-parameters.ts';
import type { DetectionFilters } from './filters.ts';
import { INSTANT_EXPECTED, readInstant } from './instant.ts';
import { invalid, type Parameters, type ParameterTable, parseParameters, readText } from './parameters.ts';
import type { Projection } from './projection.ts';

export const CHANGES_PARAMETERS: ParameterTable = { ...LIST_PARAMETERS, cursor: 'single', since: 'single' };

/** Where in the stream a page starts: after a position, or with the first change delivered at or after a time. */
export type StreamStart =
  | { readonly kind: 'after'; readonly position: number }
  | { readonly kind: 'since'; readonly since_ms: number };

export interface ChangesParameters {
  readonly start: StreamStart;
  readonly limit: number;
  readonly selection: StreamSelection;
  readonly filters: DetectionFilters;
  /** Null: every field. */
  readonly projection: Projection | null;
}

/**
 * @param raw the query string without its `?`
 * @param decodeCursor throws for a cursor that was never given
 * @throws Refused `invalid_request`
 */
export function parseChangesParameters(
  raw: string,
  nowMs: number,
  decodeCursor: (cursor: string) => number,
): ChangesParameters {
  const parameters = parseParameters(raw, CHANGES_PARAMETERS);
  return {
    start: readStart(parameters, nowMs, decodeCursor),
    limit: readLimit(parameters),
    selection: readSelection(parameters),
    filters: readFilters(parameters),
    projection: readView(parameters),
  };
}

function readStart(
  parameters: Parameters,
  nowMs: number,
  decodeCursor: (cursor: string) => number,
): StreamStart {
  const cursor = readText(parameters, 'cursor');
  const since = readText(parameters, 'since');
  if (cursor !== null && since !== null)
    throw invalid('since, cursor: mutually exclusive; send only one of them');
  if (cursor !== null) return { kind: 'after', position: decodeCursor(cursor) };
  if (since === null)
    throw invalid(
      'since, cursor: one of them is required. Send since to start the stream, then the next_cursor of each response as cursor',
    );
  return { kind: 'since', since_ms: readSince(since, nowMs) };
}

function readSince(text: string, nowMs: number): number {
  const sinceMs = readInstant(text);
  if (sinceMs === null) throw invalid(`since: must be ${INSTANT_EXPECTED}`);
  if (sinceMs > nowMs) throw invalid('since: must not be in the future');
  if (sinceMs < nowMs - SINCE_AGE_MAX_MS)
    throw invalid(
      'since: must be within the last 31 days (31 x 24 hours). For older detections, use GET /v1/detections',
    );
  return sinceMs;
}
