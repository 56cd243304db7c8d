/**
 * The filters on detections as SQL.
 *
 * The SQL fits the tables of stream rows and of current detections. Values are always bound; the text depends only on
 * which filters are sent.
 */

import type { DetectionFilters } from './common-parameters.ts';

export type SqlValue = number | string;

export interface FilterSql {
  /** Conditions, each with ` AND ` before it; empty when every row passes. */
  readonly sql: string;
  readonly values: Readonly<Record<string, SqlValue>>;
}

/** `min_score` rounds half up: 49.5 passes 50. */
const ROUNDING = 0.5;

const CONDITIONS: readonly (readonly [name: keyof DetectionFilters, condition: string])[] = [
  ['publisher_id', isIn('publisher_id', 'publisher_id')],
  ['exclude_publisher_id', isNotIn('publisher_id', 'exclude_publisher_id')],
  ['domain', isIn('domain', 'domain')],
  ['exclude_domain', isNotIn('domain', 'exclude_domain')],
  ['band', isIn('band', 'band')],
  ['min_band', 'band >= @min_band'],
  ['min_score', `score >= @min_score - ${ROUNDING}`],
  ['print', 'print = @print'],
  ['source_id', 'source_id = @source_id'],
  ['article_id', 'article_id = @article_id'],
];

export function filterSql(filters: DetectionFilters): FilterSql {
  let sql = '';
  const values: Record<string, SqlValue> = {};
  for (const [name, condition] of CONDITIONS) {
    const value = filters[name];
    if (value === null) continue;
    sql += ` AND ${condition}`;
    values[name] = boundOf(value);
  }
  return { sql, values };
}

function boundOf(value: SqlValue | boolean | readonly SqlValue[]): SqlValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' ? JSON.stringify(value) : value;
}

function isIn(column: string, parameter: string): string {
  return `${column} IN (SELECT value FROM json_each(@${parameter}))`;
}

/** Keeps rows without a value. */
function isNotIn(column: string, parameter: string): string {
  return `(${column} IS NULL OR NOT ${isIn(column, parameter)})`;
}
