/** The expected result of the scenario, computed without the program: stream, files and keys. */
import { createHash } from 'node:crypto';
import type { ExportName } from '../../../src/detection/content-type.ts';
import { idOf, type Row } from '../../support/export-files.ts';

export const FOLDERS = ['archive', 'failed', 'refused'] as const;
export type Folder = (typeof FOLDERS)[number];

/** One row of the stream. */
export interface Version {
  readonly id: string;
  readonly version: number;
  readonly score: unknown;
}

export class Model {
  /** In order of arrival. */
  stream: Version[] = [];
  /** The folders in which each file may be, by SHA-256 of its content; content dropped twice is listed twice. */
  files: { readonly sha256: string; folders: readonly (Folder | 'deleted')[] }[] = [];
  /** Whether each key is valid, by its label. */
  readonly keys = new Map<string, boolean>();
  readonly #newest = new Map<string, { version: number; row: Row }>();

  /** Applies the rows of a file; the latest scoring of each detection wins. */
  apply(exportName: ExportName, rows: readonly Row[]): void {
    for (const row of rows) {
      const id = idOf(row, exportName);
      const known = this.#newest.get(id);
      if (known === undefined) this.#add(id, 1, row);
      else if (String(row.last_scored_at) > String(known.row.last_scored_at)) {
        if (row.strength_score !== known.row.strength_score) this.#add(id, known.version + 1, row);
        else known.row = row;
      }
    }
  }

  /** URLs of print articles become visible, after a replay of all files. */
  showPrint(): void {
    for (const [id, { version, row }] of this.#newest)
      if (row.article_print === true) this.#add(id, version + 1, row);
  }

  remove(subscription: number): void {
    this.stream = this.stream.filter(({ id }) => id.split('.')[1] !== String(subscription));
  }

  file(content: Buffer, ...folders: Folder[]): void {
    this.files.push({ sha256: sha256Of(content), folders });
  }

  /** A file was moved to another folder. */
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

  #add(id: string, version: number, row: Row): void {
    this.#newest.set(id, { version, row });
    this.stream.push({ id, version, score: row.strength_score });
  }
}

export function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
