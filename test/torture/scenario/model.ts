/** The expected result of what was dropped, computed without the program: stream, files and keys. */
import { createHash } from 'node:crypto';
import type { ExportName } from '../../../src/detection/content-type.ts';
import { idOf, type Row } from '../../support/export-files.ts';

export const FOLDERS = ['archive', 'failed', 'refused'] as const;
export type Folder = (typeof FOLDERS)[number];

/** One row of the stream. */
export type Version = Readonly<{ id: string; version: number; score: unknown }>;

/** What clients must see of a detection. */
export interface Newest {
  readonly version: number;
  /** Of its latest scoring. */
  readonly row: Row;
  /** When it was first detected, and whether that is an estimate. */
  readonly first: string;
  readonly isEstimated: boolean;
}

export class Model {
  /** In order of arrival. */
  stream: Version[] = [];
  /** The folders in which each file may be, by SHA-256 of its content; content dropped twice is listed twice. */
  files: { readonly sha256: string; folders: readonly (Folder | 'deleted')[] }[] = [];
  /** Whether each key is valid, by its label. */
  readonly keys = new Map<string, boolean>();
  /** By id. */
  readonly newest = new Map<string, Newest>();

  /**
   * Applies the rows of a file: the earliest time counts, and of two that are equal one that is no estimate; all else is
   * that of the latest scoring.
   */
  apply(exportName: ExportName, rows: readonly Row[], isBackfill = false): void {
    for (const row of rows) {
      const id = idOf(row, exportName);
      const known = this.newest.get(id);
      const first = String(row.first_detected_at);
      const isEstimated =
        row.first_detected_estimated === true || (row.first_detected_estimated == null && isBackfill);
      const isFirst =
        known === undefined ||
        first < known.first ||
        (first === known.first && known.isEstimated && !isEstimated);
      const isNewest = known === undefined || String(row.last_scored_at) > String(known.row.last_scored_at);
      const next = {
        version: known?.version ?? 0,
        ...(isFirst ? { first, isEstimated } : { first: known.first, isEstimated: known.isEstimated }),
        row: isNewest ? row : known.row,
      };
      if (isFirst || shownOf(next.row) !== shownOf(known.row)) this.#add(id, next);
      else this.newest.set(id, next);
    }
  }

  /** URLs of print articles become visible, after a replay of all files. */
  showPrint(): void {
    for (const [id, known] of this.newest) if (known.row.article_print === true) this.#add(id, known);
  }

  remove(subscription: number): void {
    const isLeft = (id: string) => id.split('.')[1] !== String(subscription);
    this.stream = this.stream.filter(({ id }) => isLeft(id));
    for (const id of [...this.newest.keys()]) if (!isLeft(id)) this.newest.delete(id);
  }

  file(content: Buffer, ...folders: Folder[]): void {
    this.files.push({ sha256: sha256Of(content), folders });
  }

  move(content: Buffer, ...folders: Folder[]): void {
    const found = this.files.find(({ sha256 }) => sha256 === sha256Of(content));
    if (found === undefined) throw new Error('no such file');
    found.folders = folders;
  }

  /** All files in the archive have expired, and may be deleted. */
  expire(): void {
    this.files = this.files
      .map(({ sha256, folders }) => ({
        sha256,
        folders: folders.map((folder) => (folder === 'archive' ? 'deleted' : folder)),
      }))
      .filter(({ folders }) => folders.some((folder) => folder !== 'deleted'));
  }

  #add(id: string, known: Newest): void {
    const version = known.version + 1;
    this.newest.set(id, { ...known, version });
    this.stream.push({ id, version, score: known.row.strength_score });
  }
}

/** What clients see of a scoring. */
function shownOf({
  first_detected_at: _,
  first_detected_estimated: __,
  last_scored_at: ___,
  exported_at: ____,
  ...shown
}: Row): string {
  return JSON.stringify(shown);
}

export const sha256Of = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
