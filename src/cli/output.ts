/**
 * What commands print: one JSON document or text on stdout, and progress on a terminal's stderr.
 */
import { printable } from '../printable.ts';

/** Prints the result: the value as one document with `--json`, else the text. */
export function print(
  value: unknown,
  { json, text }: { json: boolean; text: string | (() => string) },
): void {
  const written = json ? JSON.stringify(value, null, 2) : typeof text === 'string' ? text : text();
  const shown = printable(written);
  process.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
}

/** A number of things: `1 key`, `12,000 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A number for people: with separators from five digits on. */
export function grouped(count: number): string {
  return Math.abs(count) < 10_000 ? String(count) : count.toLocaleString('en-US');
}

export type Column<Row> = {
  title: string;
  value: (row: Row) => string | number | null | undefined;
  align?: 'left' | 'right';
};

/** Rows in aligned columns below their titles; null and undefined are shown as `-`. */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => cell(column.value(row))));
  const lines = [columns.map((column) => column.title), ...cells];
  const widths = columns.map((_, at) =>
    lines.reduce((widest, line) => Math.max(widest, length(line[at])), 0),
  );
  return lines
    .map((line) => {
      const padded = line.map((text, at) => {
        const space = ' '.repeat((widths[at] ?? 0) - length(text));
        return columns[at]?.align === 'right' ? space + text : text + space;
      });
      return padded.join('  ').trimEnd();
    })
    .join('\n');
}

function cell(value: string | number | null | undefined): string {
  return value === null || value === undefined
    ? '-'
    : printable(String(value)).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Characters, not UTF-16 units: close enough to columns for names. */
function length(text: string | undefined): number {
  return text === undefined ? 0 : [...text].length;
}

export type Progress = {
  /** @param total the number at which it is done; absent when not known */
  update(done: number, total?: number): void;
  /** Clears the line; what follows is printed in its place. */
  end(): void;
};

export type ProgressStream = { isTTY?: boolean; columns?: number; write(text: string): unknown };

const REDRAW_MS = 100;

/**
 * One line on stderr that is redrawn: `label  12,000  40%  3,000/s`. Silent where stderr is no terminal.
 *
 * @param now epoch milliseconds; steady enough for a rate that is only shown
 */
export function progress(
  label: string,
  { stream = process.stderr, now = Date.now }: { stream?: ProgressStream; now?: () => number } = {},
): Progress {
  if (stream.isTTY !== true) return { update() {}, end() {} };
  const startMs = now();
  let drawnMs = Number.NEGATIVE_INFINITY;
  return {
    update(done, total) {
      const atMs = now();
      if (atMs - drawnMs < REDRAW_MS) return;
      drawnMs = atMs;
      const line = progressLine(label, done, total, atMs - startMs);
      stream.write(`\r\x1b[2K${[...line].slice(0, Math.max(1, (stream.columns ?? 80) - 1)).join('')}`);
    },
    end() {
      if (drawnMs !== Number.NEGATIVE_INFINITY) stream.write('\r\x1b[2K');
    },
  };
}

function progressLine(label: string, done: number, total: number | undefined, elapsedMs: number): string {
  const parts = [printable(label), done.toLocaleString('en-US')];
  if (total !== undefined && total > 0) parts.push(`${Math.min(100, Math.floor((done / total) * 100))}%`);
  if (elapsedMs >= 1000) parts.push(`${Math.round((done / elapsedMs) * 1000).toLocaleString('en-US')}/s`);
  return parts.join('  ');
}

/** {@link progress} for work of several steps, each with a line of its own that takes the place of the last. */
export function progressOfSteps(): {
  update(step: string, done: number, total: number): void;
  end(): void;
} {
  let shown: { step: string; line: Progress } | null = null;
  return {
    update(step, done, total) {
      if (shown?.step !== step) {
        shown?.line.end();
        shown = { step, line: progress(step) };
      }
      shown.line.update(Math.round(done), total);
    },
    end() {
      shown?.line.end();
      shown = null;
    },
  };
}
