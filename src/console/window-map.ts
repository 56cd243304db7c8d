/**
 * The map of one export: a line a day, the newest on top, with its 144 windows across. Drawn as a few SVG paths, so that
 * 13,000 windows cost no more than a handful of elements. Over them lies the one cell that has the keyboard's focus
 * (WAI-ARIA grid: rows and columns that are not there are counted by aria-rowcount and aria-colcount).
 */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ExportName } from '../admin/console/api.ts';
import { count, dayName, windowName } from './format.ts';
import { type Cell, DAY_WINDOWS, isOpen, LETTERS } from './letters.ts';
import { Mark } from './parts.ts';

const LABEL_WIDTH = 66;
const TOTAL_WIDTH = 64;
const HEAD_HEIGHT = 16;
const LINE_HEIGHT = 12;
const CELL_WIDTH = { min: 6, max: 14 };
const HOUR_WINDOWS = 6;

/** What the map says of its keys, to those who see it and to a screen reader. */
export const KEYS = 'Arrow keys move, Enter opens, n and p go to the next and previous open window';

export type MapMode = 'state' | 'rows';

interface MapProps {
  readonly name: ExportName;
  readonly cells: readonly Cell[];
  readonly mode: MapMode;
  readonly onChoose: (startMs: number) => void;
}

export function WindowMapGrid({ name, cells, mode, onChoose }: MapProps): VNode {
  const frame = useRef<HTMLDivElement>(null);
  const width = useCellWidth(frame);
  const newest = Math.max(
    0,
    cells.findLastIndex(({ letter }) => letter !== 'n' && letter !== 'w'),
  );
  const [focused, setFocused] = useState(newest);
  const [hovered, setHovered] = useState<number | null>(null);
  const place = useMemo(() => geometry(cells.length, width), [cells.length, width]);
  const drawn = useMemo(() => pathsOf(cells, mode, place), [cells, mode, place]);
  const labels = useMemo(() => [hourLabels(place), totals(cells, place)], [cells, place]);
  const days = useMemo(() => html`<${Days} cells=${cells} place=${place} />`, [cells, place]);
  const shown = cells[hovered ?? focused];
  useLayoutEffect(() => {
    if (frame.current !== null) frame.current.scrollLeft = place.at(newest).x - frame.current.clientWidth / 2;
  }, [place]);
  const under = ({ offsetX, offsetY }: MouseEvent) => place.under(offsetX, offsetY);
  const at = place.at(focused);
  return html`<div class="map-frame">
    <p class="readout">${shown && html`<${Readout} name=${name} cell=${shown} />`}</p>
    <div class="scroll" ref=${frame}>
      <div class="map" role="grid" aria-label=${`Windows of ${name}, a row a day, the newest first`} aria-rowcount=${place.days} aria-colcount=${DAY_WINDOWS} aria-description=${KEYS} data-keeps-focus>
        ${days}
        <svg width=${place.width} height=${place.height} aria-hidden="true"
          onPointerMove=${(event: PointerEvent) => setHovered(under(event))} onPointerLeave=${() => setHovered(null)}
          onClick=${(event: MouseEvent) => {
            const index = under(event);
            if (index === null) return;
            setFocused(index);
            onChoose(cells[index]?.startMs ?? 0);
          }}>
          ${labels}
          ${drawn}
          ${hovered !== null && html`<rect class="hovered" x=${place.at(hovered).x - 1.5} y=${place.at(hovered).y - 1.5} width=${width + 2} height=${LINE_HEIGHT + 2} />`}
        </svg>
        <${FocusCell} key=${name} name=${name} cells=${cells} index=${focused} at=${at} width=${width} onMove=${setFocused} onChoose=${onChoose} />
      </div>
    </div>
  </div>`;
}

function Readout({ name, cell }: { name: ExportName; cell: Cell }): VNode {
  const { text, mark } = LETTERS[cell.letter];
  return html`<span class="state"><${Mark} name=${mark} /><strong>${text}</strong></span> ${name}, ${dayName(cell.startMs)}, ${windowName(cell.startMs)}${'de'.includes(cell.letter) && html`<span class="soft">, ${count(cell.rows, 'row')}</span>`}`;
}

interface FocusProps {
  readonly name: ExportName;
  readonly cells: readonly Cell[];
  readonly index: number;
  readonly at: { readonly x: number; readonly y: number };
  readonly width: number;
  readonly onMove: (index: number) => void;
  readonly onChoose: (startMs: number) => void;
}

/** The grid's one stop for the Tab key. It is made anew for each window, so that a screen reader reads it. */
function FocusCell({ name, cells, index, at, width, onMove, onChoose }: FocusProps): VNode | null {
  const own = useRef<HTMLDivElement>(null);
  const isMoved = useRef(false);
  useEffect(() => {
    if (isMoved.current) own.current?.focus();
    isMoved.current = false;
  }, [index]);
  const cell = cells[index];
  if (cell === undefined) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ' ') onChoose(cell.startMs);
    else {
      const next = target(event, index, cells);
      if (next === null) return;
      isMoved.current = next !== index;
      onMove(next);
    }
    event.preventDefault();
  };
  const column = index % DAY_WINDOWS;
  const line = cells.length / DAY_WINDOWS - Math.floor(index / DAY_WINDOWS);
  const rows = 'de'.includes(cell.letter) ? `, ${count(cell.rows, 'row')}` : '';
  const style = {
    left: `${LABEL_WIDTH + at.x - 1}px`,
    top: `${at.y - 1}px`,
    width: `${width + 1}px`,
    height: `${LINE_HEIGHT + 1}px`,
  };
  return html`<div role="row" aria-rowindex=${line}><div role="gridcell" key=${index} ref=${own} class="focus-cell" tabindex="0" aria-colindex=${column + 1} style=${style}
    aria-label=${`${name}, ${windowName(cell.startMs)}: ${LETTERS[cell.letter].text}${rows}`} onKeyDown=${onKeyDown} onClick=${() => onChoose(cell.startMs)}></div></div>`;
}

/** @returns where a key leads; null: it leads nowhere. Up is a day newer, as it is drawn. */
function target({ key, ctrlKey }: KeyboardEvent, index: number, cells: readonly Cell[]): number | null {
  const last = cells.length - 1;
  const start = index - (index % DAY_WINDOWS);
  const within = (wanted: number) => (wanted < 0 || wanted > last ? index : wanted);
  switch (key) {
    case 'ArrowRight':
      return within(index + 1);
    case 'ArrowLeft':
      return within(index - 1);
    case 'ArrowUp':
      return within(index + DAY_WINDOWS);
    case 'ArrowDown':
      return within(index - DAY_WINDOWS);
    case 'PageUp':
      return within(index + 7 * DAY_WINDOWS);
    case 'PageDown':
      return within(index - 7 * DAY_WINDOWS);
    case 'Home':
      return ctrlKey ? last - DAY_WINDOWS + 1 : start;
    case 'End':
      return ctrlKey ? DAY_WINDOWS - 1 : start + DAY_WINDOWS - 1;
    case 'n':
      return found(
        cells.findLastIndex((cell, at) => at < index && isOpen(cell)),
        index,
      );
    case 'p':
      return found(
        cells.findIndex((cell, at) => at > index && isOpen(cell)),
        index,
      );
    default:
      return null;
  }
}

function found(at: number, index: number): number {
  return at < 0 ? index : at;
}

interface Geometry {
  readonly days: number;
  readonly cell: number;
  readonly width: number;
  readonly height: number;
  at(index: number): { readonly x: number; readonly y: number };
  under(x: number, y: number): number | null;
}

function geometry(cells: number, cell: number): Geometry {
  const days = cells / DAY_WINDOWS;
  return {
    days,
    cell,
    width: DAY_WINDOWS * cell + TOTAL_WIDTH,
    height: HEAD_HEIGHT + days * LINE_HEIGHT,
    at: (index) => ({
      x: (index % DAY_WINDOWS) * cell,
      y: HEAD_HEIGHT + (days - 1 - Math.floor(index / DAY_WINDOWS)) * LINE_HEIGHT,
    }),
    under(x, y) {
      const column = Math.floor(x / cell);
      const line = Math.floor((y - HEAD_HEIGHT) / LINE_HEIGHT);
      if (column < 0 || column >= DAY_WINDOWS || line < 0 || line >= days) return null;
      return (days - 1 - line) * DAY_WINDOWS + column;
    },
  };
}

/** Whole pixels, so that the gaps between cells are even. */
function useCellWidth(frame: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(CELL_WIDTH.min);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const fit = () => {
      const whole = Math.floor((current.clientWidth - LABEL_WIDTH - TOTAL_WIDTH) / DAY_WINDOWS);
      setWidth(Math.min(CELL_WIDTH.max, Math.max(CELL_WIDTH.min, whole)));
    };
    const observer = new ResizeObserver(fit);
    observer.observe(current);
    fit();
    return () => observer.disconnect();
  }, []);
  return width;
}

/** How a cell of `w` times `h` is drawn at its corner. */
const DRAWN: Readonly<Record<string, (w: number, h: number) => string>> = {
  empty: (w, h) => `m0 ${h * 0.6}h${w}v${h * 0.4}h-${w}z`,
  // A block with a notch above and below: an X, as far as there is room for one.
  failed: (w, h) => `h0l${w / 2} 3l${w / 2} -3v${h}l-${w / 2} -3l-${w / 2} 3z`,
  held: (w, h) => `h${w * 0.35}v${h}h-${w * 0.35}zm${w * 0.65} 0h${w * 0.35}v${h}h-${w * 0.35}z`,
  missing: (w, h) => `h${w}v${h}h-${w}zm1 1v${h - 2}h${w - 2}v-${h - 2}z`,
  late: (w, h) => `m0 ${h / 2}h${w}v${h / 2}h-${w}zm1 1v${h / 2 - 2}h${w - 2}v-${h / 2 - 2}z`,
  abandoned: (w, h) => `m0 ${h / 2 - 1.5}h${w}v3h-${w}z`,
  due: (w, h) => `m${w / 2 - 1} ${h / 2 - 1}h2v2h-2z`,
  ahead: () => '',
  none: (w, h) => `m${w / 2 - 0.5} ${h / 2 - 0.5}h1v1h-1z`,
};

function block(w: number, h: number): string {
  return `h${w}v${h}h-${w}z`;
}

/** A cell for the legend. */
export function Sample({ look }: { look: string }): VNode {
  return html`<svg class="sample" width="6" height="11" aria-hidden="true"><path class=${`w-${look}`} d=${`M0 0${(DRAWN[look] ?? block)(6, 11)}`} /></svg>`;
}

function pathsOf(cells: readonly Cell[], mode: MapMode, place: Geometry): VNode[] {
  const drawn = new Map<string, string[]>();
  const most = Math.max(1, ...cells.map(({ rows }) => rows));
  cells.forEach((cell, index) => {
    const { look } = LETTERS[cell.letter];
    const { x, y } = place.at(index);
    const shade = mode === 'rows' && look === 'done' ? `rows-${step(cell.rows, most)}` : look;
    const shape = (DRAWN[shade] ?? block)(place.cell - 1, LINE_HEIGHT - 1);
    const list = drawn.get(shade) ?? [];
    list.push(`M${x} ${y}${shape}`);
    drawn.set(shade, list);
  });
  return [...drawn].map(([look, list]) => html`<path key=${look} class=${`w-${look}`} d=${list.join('')} />`);
}

/** One of four shades, each for twice as many rows as the one before; the last one for the most. */
export function step(rows: number, most: number): number {
  return Math.max(1, 4 - Math.floor(Math.log2(most / Math.max(1, rows))));
}

function hourLabels(place: Geometry): VNode[] {
  const hours = place.cell < 7 ? 2 : 1;
  const texts = Array.from({ length: 24 / hours }, (_, index) => {
    const x = index * hours * HOUR_WINDOWS * place.cell;
    return html`<text x=${x} y="10">${`${index * hours}`.padStart(2, '0')}:00</text>`;
  });
  return [...texts, html`<text x=${place.width} y="10" text-anchor="end">rows</text>`];
}

function dayOf(cells: readonly Cell[], index: number): readonly Cell[] {
  return cells.slice(index * DAY_WINDOWS, (index + 1) * DAY_WINDOWS);
}

/** The days, which stay in place when the map is moved under them. */
function Days({ cells, place }: { cells: readonly Cell[]; place: Geometry }): VNode {
  return html`<svg class="days" width=${LABEL_WIDTH} height=${place.height} aria-hidden="true">${Array.from(
    { length: place.days },
    (_, index) => {
      const ms = dayOf(cells, index)[0]?.startMs ?? 0;
      const isWeekend = [0, 6].includes(new Date(ms).getUTCDay());
      return html`<text class=${isWeekend ? 'weekend' : ''} x="0" y=${place.at(index * DAY_WINDOWS).y + 9}>${dayName(ms)}</text>`;
    },
  )}</svg>`;
}

/** The rows of each day, behind its line. */
function totals(cells: readonly Cell[], place: Geometry): VNode[] {
  return Array.from({ length: place.days }, (_, index) => {
    const rows = dayOf(cells, index).reduce((sum, cell) => sum + cell.rows, 0);
    return html`<text x=${place.width} y=${place.at(index * DAY_WINDOWS).y + 9} text-anchor="end">${rows > 0 && count(rows)}</text>`;
  });
}
