/** The letters of the windows map: what each is called, and how it is drawn. Pure. */
import type { ExportName, WindowLetter, WindowMap } from '../admin/console/api.ts';
import { DAY_MS, WINDOW_MS } from './format.ts';
import type { MarkName } from './parts.ts';

export const EXPORTS: readonly ExportName[] = ['newswire', 'imagewire'];
export const DAY_WINDOWS = DAY_MS / WINDOW_MS;

interface Letter {
  readonly text: string;
  /** Its class in the map; `h` stands for a window with a held file. */
  readonly look: string;
  readonly mark: MarkName;
}

export const LETTERS: Readonly<Record<WindowLetter | 'h', Letter>> = {
  d: { text: 'done', look: 'done', mark: 'done' },
  e: { text: 'done, empty file', look: 'empty', mark: 'done' },
  f: { text: 'failed', look: 'failed', mark: 'failed' },
  h: { text: 'a file is held', look: 'held', mark: 'held' },
  m: { text: 'missing', look: 'missing', mark: 'missing' },
  l: { text: 'late', look: 'late', mark: 'missing' },
  a: { text: 'abandoned', look: 'abandoned', mark: 'abandoned' },
  w: { text: 'due, not there yet', look: 'due', mark: 'missing' },
  n: { text: 'not due yet', look: 'ahead', mark: 'abandoned' },
  '-': { text: 'not expected', look: 'none', mark: 'abandoned' },
};

/** Those that the legend names, in this order. */
export const LEGEND = ['d', 'e', 'f', 'h', 'm', 'l', 'a', '-'] as const;

export interface Cell {
  readonly startMs: number;
  readonly letter: keyof typeof LETTERS;
  readonly rows: number;
}

function isLetter(text: string | undefined): text is WindowLetter {
  return text !== undefined && Object.hasOwn(LETTERS, text);
}

/** The windows of an export, oldest first, whole days. */
export function cellsOf(map: WindowMap, name: ExportName): Cell[] {
  const { windows, rows } = map.exports[name];
  const fromMs = Date.parse(map.from);
  const held = new Set(
    map.open.filter((one) => one.export === name && one.held).map((one) => Date.parse(one.window_start)),
  );
  const days = Math.ceil(windows.length / DAY_WINDOWS);
  return Array.from({ length: days * DAY_WINDOWS }, (_, index) => {
    const startMs = fromMs + index * WINDOW_MS;
    const letter = windows[index];
    if (held.has(startMs)) return { startMs, letter: 'h', rows: rows[index] ?? 0 };
    return { startMs, letter: isLetter(letter) ? letter : 'n', rows: rows[index] ?? 0 };
  });
}

export function isOpen({ letter }: Cell): boolean {
  return 'fhmla'.includes(letter);
}
