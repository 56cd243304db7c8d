/** The notes of the skipped rows of a file, which come to lie beside it as `NAME.skipped.ndjson`. */
import type { RowError } from '../../exports/check-row.ts';
import { jsonText, NESTED_TOO_DEEPLY } from '../../exports/error-groups.ts';

/** Enough to find the cause. A small file can unpack to millions of bad rows. */
const NOTES_BYTES_MAX = 4 * 1024 * 1024;

export class SkippedRows {
  #notes = '';
  #bytes = 0;
  #more = 0;

  add(bad: { readonly line: number; readonly errors: readonly RowError[]; readonly row: unknown }): void {
    if (this.#bytes < NOTES_BYTES_MAX) {
      const line = `${jsonText(bad) ?? jsonText({ ...bad, row: NESTED_TOO_DEEPLY })}\n`;
      this.#bytes += Buffer.byteLength(line);
      if (this.#bytes <= NOTES_BYTES_MAX) {
        this.#notes += line;
        return;
      }
    }
    // All rows after it are left out, too: the notes have no gaps.
    this.#more += 1;
  }

  /** A JSON object a line; the rows beyond the limit are only counted. Empty if no row was skipped. */
  notes(): string {
    return this.#more === 0 ? this.#notes : `${this.#notes}{"more_rows":${this.#more}}\n`;
  }
}
