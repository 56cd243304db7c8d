/**
 * What the appliance would make of an export file, without touching anything: for `ingest validate` and
 * `ingest explain`.
 */
import { now } from '../../clock.ts';
import { type Known, merge } from '../../detection/merge.ts';
import { DetectionRows } from '../../history/detection-rows.ts';
import type { Database } from '../../store/database.ts';
import { type ApplyCounts, findKnown, NO_COUNTS } from '../apply/apply-rows.ts';
import { type RowBatch, scoringOf } from '../apply/row-batch.ts';
import { type ExportFileName, timesOf } from '../format/file-name.ts';
import { type ReadingOrder, type ReadingResult, type ReadingSinks, readExport } from './read-export.ts';

/** What the settings say of reading. */
export type ReadingRules = Pick<ReadingOrder, 'earliest' | 'require_trailer' | 'bad_rows'>;

/** Reads a file as the appliance would and keeps nothing. @param rules with streams and licences, where they count */
export function checkExport(
  path: string,
  file: ExportFileName,
  rules: ReadingRules & Partial<Pick<ReadingOrder, 'streams' | 'licensed'>>,
  sinks: Partial<Pick<ReadingSinks, 'onBatch' | 'onProgress'>>,
): Promise<ReadingResult> {
  const times = timesOf(file, now());
  return readExport(
    { path, file, ...times, streams: null, licensed: [], rows_to_skip: 0, ...rules },
    { photoPath: (sourceInternalId) => `/photos/${sourceInternalId}`, ...sinks },
  );
}

export interface Effect extends ApplyCounts {
  /** Rows that these counts are of: a very long file is judged by its beginning. */
  rows: number;
}

/** Rows that are held in memory at most while it is worked out what they would change. */
export const EFFECT_ROWS_MAX = 100_000;

/** Works out what a file's rows would change, each after the ones before it. */
export class EffectCounter {
  readonly effect: Effect = { rows: 0, ...NO_COUNTS };
  readonly #rows: DetectionRows;
  readonly #licensed: ReadonlySet<number>;
  readonly #changed = new Map<string, Known>();

  constructor(db: Database, licensed: ReadonlySet<number>) {
    this.#rows = new DetectionRows(db);
    this.#licensed = licensed;
  }

  add(batch: RowBatch): void {
    for (const [row, id] of batch.ids.entries()) {
      if (this.effect.rows >= EFFECT_ROWS_MAX) return;
      const known = this.#changed.get(id) ?? findKnown(this.#rows, id);
      const scoring = scoringOf(batch, row);
      const outcome = merge(known, scoring, this.#licensed.has(scoring.match.subscription_id));
      this.effect.rows += 1;
      this.effect[outcome.kind] += 1;
      if (outcome.kind !== 'unchanged') this.#changed.set(id, outcome.known);
    }
  }
}
