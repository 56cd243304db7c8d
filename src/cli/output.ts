/** What commands print: one JSON document or text on stdout, and progress on a terminal's stderr. */
import { grouped } from '../counted.ts';
import { printable } from '../printable.ts';

/** Prints the result: the value as one document with `--json`, else the text. */
export function print(value: unknown, { json, text }: { json: boolean; text: string | (() => string) }) {
  const inWords = () => (typeof text === 'string' ? text : text());
  const shown = printable(json ? JSON.stringify(value, null, 2) : inWords());
  process.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
}

/** A `using` declaration ends it. */
export type Progress = ReturnType<typeof createProgress>;

interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const REDRAW_MS = 100;
const CLEAR_LINE = '\r\x1b[2K';

/** `now`: epoch milliseconds. */
type ProgressOptions = { readonly stream?: ProgressStream; readonly now?: () => number };

/** One line on stderr that is redrawn: `label  12,000  40%`. Prints nothing if stderr is not a terminal. */
export function createProgress({ stream = process.stderr, now = Date.now }: ProgressOptions = {}) {
  let shown: string | null = null;
  let drawnMs = Number.NEGATIVE_INFINITY;
  const end = () => {
    if (drawnMs !== Number.NEGATIVE_INFINITY) stream.write(CLEAR_LINE);
    shown = null;
    drawnMs = Number.NEGATIVE_INFINITY;
  };
  return {
    end,
    [Symbol.dispose]: end,
    /** @param label another one begins a new line, which replaces the previous one @param total of `done`, if known */
    update(label: string, done?: number, total?: number): void {
      if (stream.isTTY !== true) return;
      const atMs = now();
      if (shown !== label) end();
      shown = label;
      if (atMs - drawnMs < REDRAW_MS) return;
      drawnMs = atMs;
      const line = progressLine(label, done, total);
      stream.write(`${CLEAR_LINE}${[...line].slice(0, Math.max(1, (stream.columns || 80) - 1)).join('')}`);
    },
  };
}

function progressLine(label: string, done: number | undefined, total = 0): string {
  if (done === undefined) return printable(label);
  const share = total > 0 ? `  ${Math.min(100, Math.floor((done / total) * 100))}%` : '';
  return `${printable(label)}  ${grouped(Math.round(done))}${share}`;
}
