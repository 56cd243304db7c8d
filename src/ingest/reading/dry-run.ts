/** Reads an export file as ingest would, without changing anything: for `ingest validate` and `ingest explain`. */
import { now } from '../../clock.ts';
import { type Known, merge } from '../../detection/merge.ts';
import { Bad } from '../../exports/article-address.ts';
import { shortValue } from '../../exports/error-groups.ts';
import { type ExportFileName, timesOf } from '../../exports/file-name.ts';
import type { Origin } from '../../exports/mapping.ts';
import { detectionRows } from '../../log/detection-rows.ts';
import type { Database } from '../../store/database.ts';
import { type ApplyCounts, findKnown, NO_COUNTS } from '../apply/apply-rows.ts';
import { type ReadingOrder, type ReadingSinks, type ReadRow, readExport } from './read-export.ts';
import { type RowBatch, scoringOf } from './row-batch.ts';

/** `earliest`: the setting. */
export type ReadingRules = Pick<ReadingOrder, 'require_trailer' | 'bad_rows' | 'mapping'> & {
  readonly earliest: string | null;
};

/** @param rules without `streams`, every stream counts as existing */
export function checkExport(
  path: string,
  file: ExportFileName,
  rules: ReadingRules & Partial<Pick<ReadingOrder, 'streams' | 'licensed'>>,
  sinks: Partial<ReadingSinks>,
) {
  const order = { source: { path, found: null }, file, rows_to_skip: 0 };
  const all = { errors_max: Number.POSITIVE_INFINITY, streams: null, former: [], licensed: [] };
  const photoPath = (sourceInternalId: number) => `/photos/${sourceInternalId}`;
  const times = timesOf(file, now(), rules.earliest);
  return readExport({ ...order, ...all, ...rules, ...times }, { photoPath, ...sinks });
}

/** What their columns were read as. */
export class FirstRows {
  readonly rows: { readonly line: number; readonly columns: Readonly<Record<string, ReadValue>> }[] = [];

  readonly add = ({ line, raw, origin }: ReadRow): void => {
    if (this.rows.length === FIRST_ROWS) return;
    const columns = Object.entries(raw).map(([name, value]) => {
      const isBad = value instanceof Bad;
      const read = isBad ? null : value;
      const constant = origin?.has(name) === false ? { constant: true } : {};
      const unreadable = isBad ? { unreadable: true } : {};
      const { value_in_file: given, ...own } = origin?.of(name, read) ?? {};
      const in_file = given === undefined ? own : { ...own, value_in_file: shortValue(given) };
      return [name, { value: shortValue(read), ...in_file, ...constant, ...unreadable }] as const;
    });
    this.rows.push({ line, columns: Object.fromEntries(columns) });
  };
}

/** The file's own column and value, where a mapping gives them others. */
export type ReadValue = {
  readonly value: unknown;
  readonly constant?: boolean;
  readonly unreadable?: boolean;
} & ReturnType<Origin['of']>;

const FIRST_ROWS = 3;

const EFFECT_ROWS_MAX = 100_000;

/** Counts what a file's rows would change, each after the ones before it. @param db null: nothing was ever ingested */
export function effectCounter(db: Database | null, licensed: ReadonlySet<number>) {
  const rows = db === null ? null : detectionRows(db);
  const changed = new Map<string, Known>();
  const effect: ApplyCounts & { rows: number } = { rows: 0, ...NO_COUNTS };
  return {
    effect,
    add(batch: RowBatch): void {
      for (const [row, id] of batch.ids.entries()) {
        if (effect.rows >= EFFECT_ROWS_MAX) return;
        const known = changed.get(id) ?? (rows && findKnown(rows, id));
        const scoring = scoringOf(batch, row);
        const outcome = merge(known, scoring, licensed.has(scoring.match.subscription_id));
        effect.rows += 1;
        effect[outcome.kind] += 1;
        if (outcome.kind !== 'unchanged') changed.set(id, outcome.known);
      }
    },
  };
}
