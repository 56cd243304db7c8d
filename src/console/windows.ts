/** The windows of 90 days: a map of each export, the list of those without data, and one window. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Action, OpenWindow, WindowDetail, WindowLetter, WindowMap } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES, type ExportName, perExport } from '../detection/content-type.ts';
import { firstErrorText } from '../exports/error-groups.ts';
import { formatMs } from '../time.ts';
import { actions } from './action.ts';
import { fileStory, windowLink } from './files.ts';
import { windowTime } from './format.ts';
import { age, type Children, foreign, soft, state, when } from './inline.ts';
import { choice, Dialog, panel, read, table } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';
import { cellsOf, KEYS, LETTERS, sample, WindowGrid } from './window-map.ts';

const LEGEND = ['d', 'e', 'f', 'h', 'm', 'l', 'a', '-'] as const;

export function Windows({ route: { parameters } }: { route: Route }): VNode {
  const reading = useReading<WindowMap>('/console/windows', ['windows']);
  const name: ExportName = EXPORT_NAMES.find((one) => one === parameters.get('export')) ?? EXPORT_NAMES[0];
  const start = parameters.get('window');
  const here = (more: Record<string, string>) => linkTo('windows', { export: name, ...more });
  return html`<p class="lead soft">Each export brings a file every ten minutes. A window without data is a gap in what clients receive.</p>
    ${read(reading, (map) => {
      const labels = perExport((known) => exportLabel(map, known));
      return html`<${OpenList} map=${map} />
      <div class="row bar">
        <div class="narrow">${choice('Export', name, labels, (chosen) => go(here({ export: chosen }), true))}</div>
        ${LEGEND.map((letter) => soft([sample(letter), LETTERS[letter][0]]))}
      </div>
      <div class="maps">${EXPORT_NAMES.map((known) => html`<div key=${known} class=${known !== name && 'other'}>${exportMap(map, known)}</div>`)}</div>
      ${start !== null && html`<${WindowDialog} name=${name} start=${start} onClose=${() => go(here({}))} />`}`;
    })}`;
}

function exportLabel({ exports, open }: WindowMap, name: ExportName): string {
  if (!exports[name].enabled) return `${name}, off`;
  const own = open.filter((window) => window.export === name).length;
  return own === 0 ? name : `${name}, ${grouped(own)} open`;
}

function exportMap(map: WindowMap, name: ExportName): VNode {
  if (!map.exports[name].enabled)
    return panel(name, html`<p class="empty">This export is switched off in the settings.</p>`);
  const onChoose = (startMs: number) => go(linkTo('windows', { export: name, window: formatMs(startMs) }));
  const grid = html`<${WindowGrid} map=${map} name=${name} onChoose=${onChoose} />`;
  return panel(name, grid, { aside: html`<span class="soft keys">${KEYS}</span>` });
}

function stateOf(letter: WindowLetter, held: boolean): VNode {
  const [text, mark] = LETTERS[letter];
  return state(held ? 'held' : mark, held ? `${text}, a file is held` : text);
}

/** The others are shown when asked for: the map is below. */
const SHOWN = 5;
const MORE = 50;

/** For each act that several windows of an export need, one that does it for all of them; none does without their files. */
function actsForAll(open: readonly OpenWindow[]): Action[] {
  const all = open.flatMap(({ letter, actions: own }) =>
    own.filter(({ operation }) => letter === 'a' || operation === 'window reset'),
  );
  const groups = Map.groupBy(all, ({ operation, given }) => `${operation} ${given.export}`);
  return [...groups.values()].flatMap((group) => {
    const [first, second] = group;
    if (first === undefined || second === undefined) return [];
    const start = group.flatMap(({ given }) => given.start ?? []).map(String);
    return { operation: first.operation, given: { ...first.given, start } };
  });
}

/** Windows without data, each with its reason and what can be done. */
export function OpenList({ map }: { map: WindowMap }): VNode {
  const { open } = map;
  const [shown, setShown] = useState(SHOWN);
  const left = open.length - shown;
  const due = EXPORT_NAMES.flatMap((name) => dueText(name, map));
  const rows = table(
    {
      label: 'Windows without data',
      rows: open.slice(0, shown),
      key: (window) => window.export + window.window_start,
      empty: due.length === 0 ? 'None. Every window that was due is done.' : 'None.',
    },
    ['Window (UTC)', (window) => windowLink(window.export, window.window_start)],
    ['Export', (window) => window.export],
    ['State', ({ letter, held }) => stateOf(letter, held)],
    ['Since', ({ since }) => age(since, '–')],
    ['Reason', whyOpen, 'wide'],
    ['Action', (window) => actions(window.actions)],
  );
  const more = html`<button type="button" class="more" onClick=${() => setShown(shown + MORE)}>Show more (${counted(left, 'window')})</button>`;
  const title = open.length === 0 ? 'Open windows' : `Open windows: ${grouped(open.length)}`;
  const aside = actions(actsForAll(open), { isAlone: true });
  return panel(title, [rows, left > 0 && more, due], { help: 'alerts', aside });
}

function whyOpen({ reason, report }: OpenWindow): Children {
  const error = report && firstErrorText(report);
  return [reason === null ? soft('–') : foreign(reason), error && foreign(error, 'reason')];
}

/** Windows that are not in the list: their files may still come. */
function dueText(name: ExportName, map: WindowMap): VNode[] {
  const due = cellsOf(map, name).filter(({ letter }) => letter === 'w').length;
  if (due === 0) return [];
  return [html`<p>${name}: ${counted(due, 'window is', 'windows are')} due and not there yet.</p>`];
}

function WindowDialog({ name, start, onClose }: { name: ExportName; start: string; onClose(): void }): VNode {
  const query = queryOf({ export: name, window_start: start });
  const reading = useReading<WindowDetail>(`/console/window${query}`, ['windows']);
  const ms = Date.parse(start);
  const title = Number.isNaN(ms) ? 'Window' : `${name}, ${windowTime(ms, ' UTC')}`;
  return html`<${Dialog} title=${title} class="drawer" onClose=${onClose}>${read(reading, story)}</${Dialog}>`;
}

function story(detail: WindowDetail): Children {
  const { letter, held, since, due_at, files } = detail;
  return html`<div class="facts">
      <p>${stateOf(letter, held)}</p>
      <p class="soft">${since !== null && html`Since ${when(since)} UTC. `}Its file was due at ${when(due_at)} UTC.</p>
      ${actions(detail.actions)}
    </div>
    <h3>Files</h3>
    ${files.length === 0 ? html`<p class="empty">There is no file for this window.</p>` : files.map(fileStory)}`;
}
