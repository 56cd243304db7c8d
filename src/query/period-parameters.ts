/** The parameters of the period endpoint (contract: GET /v1/detections). */
import { zoneName } from '../time-zone.ts';
import { isDay } from '../zone-days.ts';
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
import type { PeriodEnd, PeriodEnds } from './period.ts';
import type { Projection } from './projection.ts';

export const PERIOD_PARAMETERS: ParameterTable = {
  ...LIST_PARAMETERS,
  from: 'single',
  to: 'single',
  time_zone: 'single',
  sort: 'single',
  cursor: 'single',
};

/** The direction of time; detections of one second stand by ascending id in both. */
export type PeriodSort = 'ascending' | 'descending';

const SORTS = new Map<string, PeriodSort>([
  ['-first_detected_at', 'descending'],
  ['first_detected_at', 'ascending'],
]);

export interface PeriodParameters {
  readonly ends: PeriodEnds;
  /** As written; null when it is not given. */
  readonly time_zone: string | null;
  readonly sort: PeriodSort;
  readonly limit: number;
  /** Not yet read: whether it fits is judged with the whole request. */
  readonly cursor: string | null;
  readonly selection: StreamSelection;
  readonly filters: DetectionFilters;
  /** Null: every field. */
  readonly projection: Projection | null;
}

/**
 * @param raw the query string without its `?`
 * @throws Refused `invalid_request`
 */
export function parsePeriodParameters(raw: string): PeriodParameters {
  const parameters = parseParameters(raw, PERIOD_PARAMETERS);
  return {
    ends: { from: readEnd(parameters, 'from'), to: readEnd(parameters, 'to') },
    time_zone: readTimeZone(parameters),
    sort: readSort(parameters),
    limit: readLimit(parameters),
    cursor: readText(parameters, 'cursor'),
    selection: readSelection(parameters),
    filters: readFilters(parameters),
    projection: readView(parameters),
  };
}

function readEnd(parameters: Parameters, name: 'from' | 'to'): PeriodEnd {
  const text = readText(parameters, name);
  if (text === null)
    throw invalid(`${name}: required. Send a date such as 2026-11-21, or ${INSTANT_EXPECTED}`);
  if (isDay(text)) return { kind: 'day', day: text };
  const ms = readInstant(text);
  if (ms === null) throw invalid(`${name}: must be a date such as 2026-11-21, or ${INSTANT_EXPECTED}`);
  return { kind: 'instant', ms };
}

function readTimeZone(parameters: Parameters): string | null {
  const text = readText(parameters, 'time_zone');
  if (text !== null && zoneName(text) === null) {
    throw invalid('time_zone: must be an IANA time zone name such as Europe/Berlin');
  }
  return text;
}

function readSort(parameters: Parameters): PeriodSort {
  const text = readText(parameters, 'sort');
  if (text === null) return 'descending';
  const sort = SORTS.get(text);
  if (sort === undefined) throw invalid('sort: must be -first_detected_at or first_detected_at');
  return sort;
}
