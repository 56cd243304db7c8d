/** The windows of 90 days: a map of each export, the list of those that brought nothing, and one window's story. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ExportName, OpenWindow, WindowMap } from '../admin/console/api.ts';
import { Actions } from './action.ts';
import { count, day, dayName, windowTime } from './format.ts';
import { type Cell, cellsOf, DAY_WINDOWS, EXPORTS, LEGEND, LETTERS } from './letters.ts';
import { Age, Choice, Heading, Panel, Read, State, Table } from './parts.ts';
import { go, linkTo, type Route } from './route.ts';
import { useReading } from './server.ts';
import { WindowDialog } from './window-dialog.ts';
import { KEYS, type MapMode, Sample, WindowMapGrid } from './window-map.ts';

/** From this width on, both maps stand side by side. */
const WIDE = '(min-width: 2100px)';

export function Windows({ route }: { route: Route }): VNode {
  const reading = useReading<WindowMap>('/console/windows', ['windows']);
  const { parameters } = route;
  const name: ExportName = parameters.get('export') === 'imagewire' ? 'imagewire' : 'newswire';
  const mode: MapMode = parameters.get('by') === 'rows' ? 'rows' : 'state';
  const start = parameters.get('window');
  const isWide = useIsWide();
  const here = (more: Record<string, string>) =>
    linkTo('windows', { export: name, by: parameters.get('by'), ...more });
  const choose = (exportName: ExportName, startMs: number) =>
    go(here({ export: exportName, window: `${new Date(startMs).toISOString().slice(0, 19)}Z` }));
  return html`<${Heading}>Windows</${Heading}>
    <p class="lead soft">Each export brings a file every ten minutes. A window that brought nothing is a gap in what clients receive.</p>
    <${Read} of=${reading}>${(map: WindowMap) => html`
      <div class="bar">
        ${!isWide && html`<${Choice} label="Export" value=${name} options=${EXPORTS.map((one) => [one, exportLabel(map, one)])} onChoose=${(one: ExportName) => go(here({ export: one }), true)} />`}
        <${Choice} label="Shade by" value=${mode} options=${[['state', 'State'], ['rows', 'Rows']]} onChoose=${(by: MapMode) => go(here({ by }), true)} />
        <${Legend} mode=${mode} />
      </div>
      <div class="maps">${(isWide ? EXPORTS : [name]).map((one) => html`<${ExportMap} key=${one} map=${map} name=${one} mode=${mode} onChoose=${choose} />`)}</div>
      <${OpenList} open=${map.open} />
      ${start !== null && html`<${WindowDialog} name=${name} start=${start} onClose=${() => go(here({}))} />`}`}</${Read}>`;
}

function exportLabel(map: WindowMap, name: ExportName): string {
  if (!map.exports[name].enabled) return `${name}, off`;
  const open = map.open.filter((one) => one.export === name).length;
  return open === 0 ? name : `${name}, ${count(open)} open`;
}

function useIsWide(): boolean {
  const [isWide, setIsWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const changed = () => setIsWide(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return isWide;
}

function Legend({ mode }: { mode: MapMode }): VNode {
  if (mode === 'rows')
    return html`<p class="legend soft"><span>Fewer rows</span>${[1, 2, 3, 4].map((one) => html`<${Sample} look=${`rows-${one}`} />`)}<span>more rows</span></p>`;
  return html`<p class="legend soft">${LEGEND.map((letter) => html`<span><${Sample} look=${LETTERS[letter].look} />${LETTERS[letter].text}</span>`)}</p>`;
}

interface ExportMapProps {
  readonly map: WindowMap;
  readonly name: ExportName;
  readonly mode: MapMode;
  readonly onChoose: (name: ExportName, startMs: number) => void;
}

function ExportMap({ map, name, mode, onChoose }: ExportMapProps): VNode {
  const cells = useMemo(() => cellsOf(map, name), [map, name]);
  if (!map.exports[name].enabled)
    return html`<${Panel} title=${name}><p class="empty">This export is switched off in the settings.</p></${Panel}>`;
  return html`<${Panel} title=${name} class="map-panel" aside=${html`<span class="soft keys">${KEYS}</span>`}>
    <${WindowMapGrid} name=${name} cells=${cells} mode=${mode} onChoose=${(startMs: number) => onChoose(name, startMs)} />
    <details><summary>As a table, a row a day</summary><${Days} name=${name} cells=${cells} /></details>
  </${Panel}>`;
}

interface Day {
  readonly startMs: number;
  readonly cells: readonly Cell[];
}

function Days({ name, cells }: { name: ExportName; cells: readonly Cell[] }): VNode {
  const days: Day[] = [];
  for (let at = cells.length - DAY_WINDOWS; at >= 0; at -= DAY_WINDOWS)
    days.push({ startMs: cells[at]?.startMs ?? 0, cells: cells.slice(at, at + DAY_WINDOWS) });
  const number = (title: string, letters: string) => ({
    title,
    isNumber: true,
    of: (one: Day) => count(one.cells.filter(({ letter }) => letters.includes(letter)).length),
  });
  const columns = [
    { title: 'Day (UTC)', of: (one: Day) => `${dayName(one.startMs)} ${day(one.startMs).slice(0, 4)}` },
    number('Done', 'de'),
    number('Failed or held', 'fh'),
    number('Missing or late', 'ml'),
    number('Abandoned', 'a'),
    {
      title: 'Rows',
      isNumber: true,
      of: (one: Day) => count(one.cells.reduce((sum, { rows }) => sum + rows, 0)),
    },
  ];
  return html`<${Table} label=${`Windows of ${name} by day`} columns=${columns} rows=${days} keyOf=${(one: Day) => one.startMs} />`;
}

const SHOWN = 50;

function OpenList({ open }: { open: readonly OpenWindow[] }): VNode {
  const [shown, setShown] = useState(SHOWN);
  const columns = [
    {
      title: 'Window (UTC)',
      of: (one: OpenWindow) =>
        html`<a href=${linkTo('windows', { export: one.export, window: one.window_start })}>${windowTime(Date.parse(one.window_start))}</a>`,
    },
    { title: 'Export', of: (one: OpenWindow) => one.export },
    {
      title: 'State',
      of: ({ letter, held }: OpenWindow) => {
        const { text, mark } = LETTERS[letter];
        return html`<${State} name=${held ? 'held' : mark}>${text}${held && ', a file is held'}</${State}>`;
      },
    },
    { title: 'Since', of: ({ since }: OpenWindow) => html`<${Age} at=${since} never="–" />` },
    {
      title: 'Reason',
      of: ({ reason }: OpenWindow) => reason ?? html`<span class="soft">–</span>`,
      class: 'wide',
    },
    { title: 'Action', of: ({ actions }: OpenWindow) => html`<${Actions} of=${actions} />` },
  ];
  return html`<${Panel} title=${open.length === 0 ? 'Open windows' : `Open windows: ${count(open.length)}`} help="alerts">
    <${Table} label="Windows that brought nothing" columns=${columns} rows=${open.slice(0, shown)} keyOf=${(one: OpenWindow) => one.export + one.window_start} empty="None. Every window that was due is done." />
    ${open.length > shown && html`<button type="button" class="more" onClick=${() => setShown(shown + SHOWN)}>Show more (${count(open.length - shown, 'window')})</button>`}
  </${Panel}>`;
}
