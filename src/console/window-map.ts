/**
 * The map of one export: a row per day, the newest on top, with its 144 windows. 13,000 windows are a few SVG paths. Above
 * them is one cell, which has the keyboard's focus (WAI-ARIA grid: aria-rowcount and aria-colcount count the rows and
 * columns without elements).
 */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { WindowLetter, WindowMap } from '../admin/console/api.ts';
import { counted } from '../counted.ts';
import type { ExportName } from '../detection/content-type.ts';
import { DAY_MS, WINDOW_MS } from '../time.ts';
import { dayName, windowTime } from './format.ts';
import { type MarkName, soft, state } from './inline.ts';

const DAY_WINDOWS = DAY_MS / WINDOW_MS;

const LABEL_WIDTH = 66;
const HEAD_HEIGHT = 16;
const LINE_HEIGHT = 12;
const CELL_WIDTH = 6;
/** Of the shape in a cell, which leaves a gap to the next one. */
const [W, H] = [CELL_WIDTH - 1, LINE_HEIGHT - 1];

const box = (x: number, y: number, w: number, h: number) => `m${x} ${y}h${w}v${h}h-${w}z`;
const DOT = box(W / 2 - 0.5, H / 2 - 0.5, 1, 1);
/** An X in a small space: a block with a notch above and below. */
const CROSS = `h0l${W / 2} 3l${W / 2} -3v${H}l-${W / 2} -3l-${W / 2} 3z`;

/** Its colour in the map is a custom property, its shape a path from its corner. `h`: a file of the window is held. */
export const LETTERS: Readonly<
  Record<WindowLetter | 'h', readonly [text: string, mark: MarkName, color: string, shape: string]>
> = {
  d: ['done', 'done', 'cell', box(0, 0, W, H)],
  e: ['done, empty file', 'done', 'cell', box(0, H * 0.6, W, H * 0.4)],
  f: ['failed', 'failed', 'failed', CROSS],
  h: ['a file is held', 'held', 'held', box(0, 0, W * 0.35, H) + box(W * 0.65, 0, W * 0.35, H)],
  m: ['missing', 'missing', 'missing', box(0, 0, W, H) + box(1, 1, W - 2, H - 2)],
  l: ['late', 'missing', 'missing', box(0, H / 2, W, H / 2) + box(1, 1, W - 2, H / 2 - 2)],
  a: ['abandoned', 'abandoned', 'abandoned', box(0, H / 2 - 1.5, W, 3)],
  w: ['due, not there yet', 'missing', 'abandoned', DOT],
  n: ['not due yet', 'abandoned', 'line', ''],
  '-': ['not expected', 'abandoned', 'edge', DOT],
};

export type Cell = Readonly<{ startMs: number; letter: keyof typeof LETTERS; rows: number }>;

const isLetter = (text: string): text is keyof typeof LETTERS => Object.hasOwn(LETTERS, text);

/** The windows of an export, oldest first, whole days. */
export function cellsOf({ from, exports }: WindowMap, name: ExportName): Cell[] {
  const { windows, rows } = exports[name];
  return Array.from(windows, (letter, index) => ({
    startMs: Date.parse(from) + index * WINDOW_MS,
    letter: isLetter(letter) ? letter : 'n',
    rows: rows[index] ?? 0,
  }));
}

/** Without the days before the first window that was expected; whole days, at least a week. */
function expected(cells: readonly Cell[]): readonly Cell[] {
  const first = cells.findIndex(({ letter }) => letter !== '-' && letter !== 'n');
  const day = Math.floor((first < 0 ? cells.length : first) / DAY_WINDOWS) * DAY_WINDOWS;
  return cells.slice(Math.max(0, Math.min(day, cells.length - 7 * DAY_WINDOWS)));
}

/** A path for each letter. */
function drawn(cells: readonly Cell[], placeOf: (index: number) => readonly [x: number, y: number]): VNode[] {
  const paths = new Map<Cell['letter'], string>();
  cells.forEach(({ letter }, index) => {
    const shape = `M${placeOf(index).join(' ')}${LETTERS[letter][3]}`;
    paths.set(letter, `${paths.get(letter) ?? ''}${shape}`);
  });
  return [...paths].map(
    ([key, d]) => html`<path key=${key} fill=${`var(--${LETTERS[key][2]})`} fill-rule="evenodd" d=${d} />`,
  );
}

export function sample(letter: Cell['letter']): VNode {
  const paths = drawn([{ startMs: 0, letter, rows: 0 }], () => [0, 0]);
  return html`<svg class="mark" width=${W} height=${H} aria-hidden="true">${paths}</svg>`;
}

/** What the map says of its keys, to those who see it and to a screen reader. */
export const KEYS = 'Arrow keys move, Enter opens, n and p go to the next and previous open window';

type MapProps = Readonly<{ map: WindowMap; name: ExportName; onChoose: (startMs: number) => void }>;

/** Columns go from the left, lines of days from the top, the newest first. */
export function WindowGrid({ map, name, onChoose }: MapProps): VNode {
  const cells = useMemo(() => expected(cellsOf(map, name)), [map]);
  const days = cells.length / DAY_WINDOWS;
  const lineOf = (index: number) => days - 1 - Math.floor(index / DAY_WINDOWS);
  const placeOf = (index: number) =>
    [(index % DAY_WINDOWS) * CELL_WIDTH, HEAD_HEIGHT + lineOf(index) * LINE_HEIGHT] as const;
  const outline = (index: number) => {
    const [x, y] = placeOf(index);
    return { x: x - 1.5, y: y - 1.5, width: CELL_WIDTH + 2, height: LINE_HEIGHT + 2 };
  };
  /** The cell at a point; null: none is there. */
  const under = ({ offsetX, offsetY }: MouseEvent) => {
    const column = Math.floor(offsetX / CELL_WIDTH);
    const line = Math.floor((offsetY - HEAD_HEIGHT) / LINE_HEIGHT);
    const isIn = column >= 0 && column < DAY_WINDOWS && line >= 0 && line < days;
    return isIn ? (days - 1 - line) * DAY_WINDOWS + column : null;
  };
  const [width, height] = [DAY_WINDOWS * CELL_WIDTH, HEAD_HEIGHT + days * LINE_HEIGHT];
  const newest = cells.findLastIndex(({ letter }) => letter !== 'n' && letter !== 'w');
  const [focused, setFocused] = useState(Math.max(0, newest));
  const [hovered, setHovered] = useState<number | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const focusCell = useRef<SVGRectElement>(null);
  const isMoved = useRef(false);
  const paths = useMemo(() => drawn(cells, placeOf), [cells]);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current !== null) current.scrollLeft = placeOf(newest)[0] - current.clientWidth / 2;
  }, []);
  useEffect(() => {
    if (isMoved.current) focusCell.current?.focus();
    isMoved.current = false;
  }, [focused]);
  const choose = (event: Event, index: number | null) => {
    event.stopPropagation();
    if (index === null) return;
    setFocused(index);
    onChoose(cells[index]?.startMs ?? 0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = targetOf(event, focused, cells);
    if (next === null) return;
    event.preventDefault();
    if (event.key === 'Enter' || event.key === ' ') return choose(event, focused);
    isMoved.current = next !== focused;
    setFocused(next);
  };
  const at = cells[focused];
  const shown = hovered === null ? at : cells[hovered];
  return html`<p class="readout">${shown && readout(name, shown)}</p>
    <div class="scroll map" ref=${frame}>
      <svg class="days" width=${LABEL_WIDTH} height=${height} aria-hidden="true">${dayNames(cells)}</svg>
      <svg width=${width} height=${height} role="grid" aria-description=${KEYS}
        aria-label=${`Windows of ${name}, a row a day, the newest first`}
        aria-rowcount=${days} aria-colcount=${DAY_WINDOWS}
        onPointerMove=${(event: PointerEvent) => setHovered(under(event))}
        onPointerLeave=${() => setHovered(null)}
        onClick=${(event: MouseEvent) => choose(event, under(event))}>
        <g aria-hidden="true">${HOURS}${paths}${hovered !== null && html`<rect ...${outline(hovered)} />`}</g>
        <g role="row" aria-rowindex=${lineOf(focused) + 1}>
          <rect role="gridcell" key=${focused} ref=${focusCell} ...${outline(focused)} tabindex="0"
            aria-colindex=${(focused % DAY_WINDOWS) + 1} aria-label=${at && labelOf(name, at)}
            onKeyDown=${onKeyDown} onClick=${(event: Event) => choose(event, focused)} />
        </g>
      </svg>
    </div>`;
}

const rowsText = ({ letter, rows }: Cell): string =>
  'de'.includes(letter) ? `, ${counted(rows, 'row')}` : '';

function readout(name: ExportName, cell: Cell): VNode {
  const [text, mark] = LETTERS[cell.letter];
  const time = `${dayName(cell.startMs)}, ${windowTime(cell.startMs, ' UTC')}`;
  return html`${state(mark, html`<strong>${text}</strong>`)} ${name}, ${time}${soft(rowsText(cell))}`;
}

/** The cell with the focus is a new element for each window, so that a screen reader reads its label. */
const labelOf = (name: ExportName, cell: Cell): string =>
  `${name}, ${windowTime(cell.startMs, ' UTC')}: ${LETTERS[cell.letter][0]}${rowsText(cell)}`;

/** @returns the window that a key moves to, or stays at; null for other keys */
function targetOf({ key, ctrlKey }: KeyboardEvent, index: number, cells: readonly Cell[]): number | null {
  const isOpen = ({ letter }: Cell) => 'fhmla'.includes(letter);
  const start = index - (index % DAY_WINDOWS);
  const targets: Readonly<Record<string, number>> = {
    Enter: index,
    ' ': index,
    ArrowRight: index + 1,
    ArrowLeft: index - 1,
    // Up is a day newer, as in the map.
    ArrowUp: index + DAY_WINDOWS,
    ArrowDown: index - DAY_WINDOWS,
    PageUp: index + 7 * DAY_WINDOWS,
    PageDown: index - 7 * DAY_WINDOWS,
    Home: ctrlKey ? cells.length - DAY_WINDOWS : start,
    End: (ctrlKey ? 0 : start) + DAY_WINDOWS - 1,
    n: cells.findLastIndex((cell, at) => at < index && isOpen(cell)),
    p: cells.findIndex((cell, at) => at > index && isOpen(cell)),
  };
  const wanted = targets[key];
  if (wanted === undefined) return null;
  return cells[wanted] === undefined ? index : wanted;
}

const labelY = (line: number) => HEAD_HEIGHT + line * LINE_HEIGHT + 9;

const HOURS = Array.from({ length: 12 }, (_, index) => {
  const x = (index * DAY_WINDOWS * CELL_WIDTH) / 12;
  return html`<text x=${x} y=${labelY(-1)}>${`${2 * index}`.padStart(2, '0')}:00</text>`;
});

/** The names of the days, which do not scroll with the map. */
function dayNames(cells: readonly Cell[]): VNode[] {
  const days = cells.filter((_, index) => index % DAY_WINDOWS === 0).reverse();
  return days.map(({ startMs }, line) => html`<text x="0" y=${labelY(line)}>${dayName(startMs)}</text>`);
}
