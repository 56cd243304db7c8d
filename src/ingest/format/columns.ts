/** The columns of export files: the public format of a row, one entry each. */
import type { ExportName } from '../../detection/content-type.ts';
import { NUMBER_MAX } from '../../detection/content-type.ts';
import type { ExportRow } from '../../detection/match.ts';

export type ColumnName = keyof ExportRow;

export type ColumnKind =
  | { readonly type: 'integer'; readonly least: number; readonly most: number }
  | { readonly type: 'score' }
  | { readonly type: 'timestamp'; readonly bound: 'none' | 'latest' | 'both' }
  | { readonly type: 'boolean' }
  | { readonly type: 'string'; readonly characters_max?: number; readonly trimmed?: boolean }
  | { readonly type: 'address' };

export interface ExportColumn {
  readonly name: ColumnName;
  readonly kind: ColumnKind;
  readonly required: boolean;
  readonly exports: readonly ExportName[];
}

const BOTH: readonly ExportName[] = ['newswire', 'imagewire'];
const TEXT: readonly ExportName[] = ['newswire'];
const IMAGE: readonly ExportName[] = ['imagewire'];

const ID: ColumnKind = { type: 'integer', least: 1, most: NUMBER_MAX };
const NUMBER: ColumnKind = { type: 'integer', least: 0, most: NUMBER_MAX };
const STRING: ColumnKind = { type: 'string' };
const TIMESTAMP: ColumnKind = { type: 'timestamp', bound: 'none' };
const ADDRESS: ColumnKind = { type: 'address' };
const BOOLEAN: ColumnKind = { type: 'boolean' };

export const SOURCE_ID_CHARACTERS_MAX = 200;

export const EXPORT_COLUMNS: readonly ExportColumn[] = [
  required('subscription_id', ID),
  required('source_internal_id', NUMBER),
  required('article_id', NUMBER),
  required('first_detected_at', { type: 'timestamp', bound: 'both' }),
  required('last_scored_at', { type: 'timestamp', bound: 'latest' }),
  required('strength_score', { type: 'score' }),
  optional('first_detected_estimated', BOOLEAN, BOTH),
  optional('exported_at', TIMESTAMP, BOTH),
  optional('source_id', { type: 'string', characters_max: SOURCE_ID_CHARACTERS_MAX }, BOTH),
  optional('source_published_at', TIMESTAMP, BOTH),
  optional('source_language', STRING, TEXT),
  optional('source_syndicated', BOOLEAN, TEXT),
  optional('source_sentences', NUMBER, TEXT),
  optional('source_image_url', ADDRESS, IMAGE),
  optional('source_origin_url', ADDRESS, IMAGE),
  optional('strength_matched_sentences', NUMBER, TEXT),
  optional('strength_article_sentences', NUMBER, TEXT),
  optional('article_url', ADDRESS, BOTH),
  optional('article_domain', STRING, BOTH),
  optional('article_published_at', TIMESTAMP, BOTH),
  optional('article_headline', STRING, BOTH),
  optional('article_publisher_id', ID, BOTH),
  optional('article_publisher_name', { type: 'string', trimmed: true }, BOTH),
  optional('article_print', BOOLEAN, TEXT),
  optional('article_image_url', ADDRESS, IMAGE),
];

/** Columns that are the appliance's to give: where an export carries them, they must agree with it. */
export const CHECKED_COLUMNS = ['content_type', 'match_type', 'strength_band'] as const;
export type CheckedColumn = (typeof CHECKED_COLUMNS)[number];

export function isCheckedColumn(name: string): name is CheckedColumn {
  return (CHECKED_COLUMNS as readonly string[]).includes(name);
}

const BY_NAME = new Map<string, ExportColumn>(EXPORT_COLUMNS.map((column) => [column.name, column]));

export function exportColumn(name: string): ExportColumn | undefined {
  return BY_NAME.get(name);
}

function required(name: ColumnName, kind: ColumnKind): ExportColumn {
  return { name, kind, required: true, exports: BOTH };
}

function optional(name: ColumnName, kind: ColumnKind, exports: readonly ExportName[]): ExportColumn {
  return { name, kind, required: false, exports };
}
