/** What commands print: one JSON document or text on stdout, and progress on a terminal's stderr. */
import type { Command } from 'commander';
import { grouped } from '../counted.ts';
import { printable } from '../printable.ts';
import { commonOptions } from './options.ts';

/** What a command prints, and whether it ends with exit code 1. */
export interface Result {
  /** Printed with --json. */
  readonly value: unknown;
  readonly text: string;
  readonly failed?: boolean;
}

/** Prints the result: the value as one document with `--json`, else the text. */
export function print(command: Command, { value, text }: Result): void {
  endProgress();
  const shown = printable(commonOptions(command).json ? JSON.stringify(value, null, 2) : text);
  process.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
}

/** Says on stderr what is no part of the result. */
export function note(text: string): void {
  endProgress();
  process.stderr.write(`wirewatch: ${printable(text)}\n`);
}

const REDRAW_MS = 100;
const CLEAR_LINE = '\r\x1b[2K';

let progressLabel: string | null = null;
let drawnMs = 0;

/**
 * One line on stderr that is redrawn, until something else is printed: `label  12,000  40%`. Nothing if stderr is not a
 * terminal.
 * @param label another one is shown at once @param total of `done`, if known
 */
export function showProgress(label: string, done?: number, total = 0): void {
  const { stderr } = process;
  const nowMs = Date.now();
  if (!stderr.isTTY || (label === progressLabel && nowMs - drawnMs < REDRAW_MS)) return;
  progressLabel = label;
  drawnMs = nowMs;
  const count = done === undefined ? '' : `  ${grouped(Math.round(done))}`;
  const share = total > 0 ? `  ${Math.min(100, Math.floor(((done ?? 0) / total) * 100))}%` : '';
  const text = `${printable(label)}${count}${share}`;
  const line = [...text].slice(0, Math.max(1, (stderr.columns || 80) - 1));
  stderr.write(`${CLEAR_LINE}${line.join('')}`);
}

export function endProgress(): void {
  if (progressLabel !== null) process.stderr.write(CLEAR_LINE);
  progressLabel = null;
}
