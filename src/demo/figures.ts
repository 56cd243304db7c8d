/** The numbers that the demonstration prints. */
import type { Database } from '../store/database.ts';

const COUNT_FILES = `SELECT count(*) AS files FROM ingest_file WHERE outcome IN ('applied', 'repeated')`;

const SELECT_FIGURES = `
  SELECT (SELECT count(*) FROM detection) AS detections, (SELECT count(*) FROM stream_row) AS versions,
    (SELECT id FROM detection
      WHERE place >> 34 = (SELECT max(place) >> 34 FROM stream_row) AND place = (SELECT max(place) FROM stream_row)
    ) AS newestId`;

export interface Figures {
  readonly detections: number;
  readonly versions: number;
  /** The id of a detection. */
  readonly newestId: string | null;
}

export function readFigures(db: Database): Figures {
  return (
    db.prepare<unknown[], Figures>(SELECT_FIGURES).get() ?? { detections: 0, versions: 0, newestId: null }
  );
}

/** The number of processed files. */
export function countFiles(db: Database): number {
  return db.prepare<unknown[], { files: number }>(COUNT_FILES).get()?.files ?? 0;
}
