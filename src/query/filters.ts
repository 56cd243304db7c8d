/**
 * The filters on detections as SQL (contract: Common detection filters).
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

export function filterSql(filters: DetectionFilters): FilterSql {
  const conditions: string[] = [];
  const values: Record<string, SqlValue> = {};
  const add = (name: keyof DetectionFilters, condition: string, value: SqlValue) => {
    conditions.push(` AND ${condition}`);
    values[name] = value;
  };
  const { publisher_id, exclude_publisher_id, domain, exclude_domain, band } = filters;
  if (publisher_id !== null)
    add('publisher_id', `publisher_id IN ${LIST('publisher_id')}`, listOf(publisher_id));
  if (exclude_publisher_id !== null) {
    add('exclude_publisher_id', notIn('publisher_id', 'exclude_publisher_id'), listOf(exclude_publisher_id));
  }
  if (domain !== null) add('domain', `domain IN ${LIST('domain')}`, listOf(domain));
  if (exclude_domain !== null)
    add('exclude_domain', notIn('domain', 'exclude_domain'), listOf(exclude_domain));
  if (band !== null) add('band', `band IN ${LIST('band')}`, listOf(band));
  if (filters.min_band !== null) add('min_band', 'band >= @min_band', filters.min_band);
  if (filters.min_score !== null) add('min_score', 'score >= @min_score', filters.min_score - ROUNDING);
  if (filters.print !== null) add('print', 'print = @print', filters.print ? 1 : 0);
  if (filters.source_id !== null) add('source_id', 'source_id = @source_id', filters.source_id);
  if (filters.article_id !== null) add('article_id', 'article_id = @article_id', filters.article_id);
  return { sql: conditions.join(''), values };
}

const LIST = (parameter: string) => `(SELECT value FROM json_each(@${parameter}))`;

/** Keeps rows without a value. */
function notIn(column: string, parameter: string): string {
  return `(${column} IS NULL OR ${column} NOT IN ${LIST(parameter)})`;
}

function listOf(list: readonly SqlValue[]): string {
  return JSON.stringify(list);
}
