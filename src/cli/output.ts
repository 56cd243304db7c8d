/** What commands print: one JSON document or text on stdout, and progress on a terminal's stderr. */
import type { Command } from 'commander';
import { grouped } from '../counted.ts';
import { printable } from '../printable.ts';
import type { Result } from './command.ts';
import { commonOptions } from './options.ts';

/** Prints the result: the value as one document with `--json`, else the text. */
export function print(command: Command, { value, text }: Result): void {
  const shown = printable(commonOptions(command).json ? JSON.stringify(value, null, 2) : text);
  process.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
}

/** Says on stderr what is no part of the result. */
export function note(text: string): void {
  process.stderr.write(`wirewatch: ${printable(text)}\n`);
}

/** A `using` declaration ends it. */
export type Progress = ReturnType<typeof createProgress>;

const REDRAW_MS = 100;
const CLEAR_LINE = '\r\x1b[2K';

/** One line on stderr that is redrawn: `label  12,000  40%`. Prints nothing if stderr is not a terminal. */
export function createProgress() {
  const { stderr } = process;
  let shown: string | null = null;
  let drawnMs = 0;
  const end = () => {
    if (shown !== null) stderr.write(CLEAR_LINE);
    shown = null;
  };
  return {
    end,
    [Symbol.dispose]: end,
    /** @param label another one is shown at once @param total of `done`, if known */
    update(label: string, done?: number, total?: number): void {
      const nowMs = Date.now();
      if (!stderr.isTTY || (label === shown && nowMs - drawnMs < REDRAW_MS)) return;
      shown = label;
      drawnMs = nowMs;
      const line = [...progressLine(label, done, total)].slice(0, Math.max(1, (stderr.columns || 80) - 1));
      stderr.write(`${CLEAR_LINE}${line.join('')}`);
    },
  };
}

function progressLine(label: string, done: number | undefined, total = 0): string {
  if (done === undefined) return printable(label);
  const share = total > 0 ? `  ${Math.min(100, Math.floor((done / total) * 100))}%` : '';
  return `${printable(label)}  ${grouped(Math.round(done))}${share}`;
}
