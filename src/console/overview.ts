/** The first view: is anything missing, who is behind, what to do, a detection; below, the state of everything. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Overview as Answer, DetectionsPage, Jobs, WindowMap } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { type Line, statusIngestLines, systemLines } from '../operations/status-lines.ts';
import { actionButton } from './action.ts';
import { Activity } from './activity.ts';
import { detectionRows, titleOf } from './detections.ts';
import { bytes, sum } from './format.ts';
import { labelOf } from './forms.ts';
import { age, type Children, foreign, type MarkName, mark, soft, state, withCommands } from './inline.ts';
import { type Facts, facts, failed, panel, read, table } from './parts.ts';
import { linkTo } from './route.ts';
import { type Reading, useReading } from './server.ts';
import { cellsOf } from './window-map.ts';
import { OpenList } from './windows.ts';

export function Overview({ overview }: { overview: Reading<Answer> }): VNode {
  const windows = useReading<WindowMap>('/console/windows', ['windows']);
  const live = useReading<DetectionsPage>('/console/detections/live?limit=6', ['detections']);
  const jobs = useReading<Jobs>('/console/jobs', ['jobs']);
  const [map] = windows.pages;
  const newest = ({ detections }: DetectionsPage) =>
    detectionRows(detections, 'Newest versions', 'None yet. They appear as export files are read.');
  const start = ['backup', 'verify', 'compact'].map((operation) => actionButton({ operation, given: {} }));
  return read(
    overview,
    (answer) => html`<p class="lead health">${state(...verdict(answer))}</p>
      ${answer.database.unreadable !== null && failed(`${UNREADABLE}: ${answer.database.unreadable}`)}
      ${tiles(answer, windows, live.pages[0])}
      <div class="columns">
        ${answer.alerts.length > 0 && alerts(answer)}
        ${map !== undefined && map.open.length > 0 && html`<div class="across"><${OpenList} map=${map} /></div>`}
        ${panel('Newest versions, as delivered', read(live, newest), { look: 'half', aside: html`<a href=${linkTo('detections')}>Live stream</a>` })}
        <${Activity} about=${answer} />
        ${panel('Ingest', facts(shown(statusIngestLines(answer))), { help: 'operations', aside: actionButton({ operation: answer.health.paused_since === null ? 'ingest pause' : 'ingest resume', given: {} }) })}
        ${panel('System', facts(system(answer)), { help: 'growth', aside: answer.role === 'standby' && actionButton({ operation: 'promote', given: {} }) })}
        ${panel('Jobs', jobTable(jobs.pages[0]), { look: 'across', help: 'backup', aside: start })}
      </div>`,
  );
}

export const missingIn = (exports: Answer['exports']): number =>
  sum(EXPORT_NAMES.flatMap((name) => Object.values(exports[name].not_read)));

type Shown = readonly [mark: MarkName, answer: Children];

/** One verdict for all that the page shows: its colour is that of the worst. */
function verdict({ health, alerts, exports, keys, database }: Answer): Shown {
  const { status, reason, paused_since } = health;
  const told = (name: string, text: string) => html`<strong>${name}.</strong> ${text}`;
  if (paused_since !== null) return ['held', told('Paused', reason)];
  if (status !== 'ok' || database.unreadable !== null) return ['failed', told('Needs someone now', reason)];
  const windows = missingIn(exports);
  const waiting = [
    alerts.length > 0 && counted(alerts.length, 'alert'),
    windows > 0 && `${counted(windows, 'window')} without data`,
    keys.behind > 0 && `${counted(keys.behind, 'key')} behind`,
  ].filter(Boolean);
  if (waiting.length === 0) return ['done', told('All is well', 'Nothing is missing, and nobody is behind.')];
  return ['warning', told('Working, with something to look at', `${waiting.join(', ')}. It can wait.`)];
}

/** Windows that are due since the newest finished one: {@link missingIn} counts those before it. */
const overdueIn = (map: WindowMap, exports: Answer['exports']): number =>
  EXPORT_NAMES.flatMap((name) => {
    const sinceMs = Date.parse(exports[name].newest_done ?? map.from);
    return cellsOf(map, name).filter(({ letter, startMs }) => letter === 'w' && startMs >= sinceMs);
  }).length;

const UNREADABLE = 'The database cannot be read now';
const NOT_KNOWN: Shown = ['abandoned', 'Not known'];

function missing({ exports }: Answer, { pages: [map], failure }: Reading<WindowMap>): Shown {
  if (map === undefined) return failure === undefined ? ['abandoned', 'Reading …'] : NOT_KNOWN;
  const [open, overdue] = [missingIn(exports), overdueIn(map, exports)];
  const parts = [
    open > 0 && `${counted(open, 'window')} without data`,
    overdue > 0 && `${open > 0 ? grouped(overdue) : counted(overdue, 'window')} overdue`,
  ].filter(Boolean);
  return parts.length === 0 ? ['done', 'Nothing is missing'] : ['missing', parts.join(', ')];
}

/** `newswire: 1 failed, 2 missing` */
function reach(name: ExportName, { newest_done, not_read }: Answer['exports'][ExportName]): VNode {
  const open = Object.entries(not_read)
    .filter(([, windows]) => windows > 0)
    .map(([reason, windows]) => `${grouped(windows)} ${reason.replace('_', ' ')}`);
  return html`<div>${name}: ${open.join(', ') || ['newest window ', age(newest_done, 'none yet')]}</div>`;
}

function tiles(answer: Answer, windows: Reading<WindowMap>, live: DetectionsPage | undefined): VNode {
  const { alerts, keys, followers, exports } = answer;
  const isReadable = answer.database.unreadable === null;
  const enabled = EXPORT_NAMES.filter((name) => exports[name].enabled);
  const behind: Shown =
    keys.behind === 0 ? ['done', 'Nobody is behind'] : ['warning', `${counted(keys.behind, 'key')} behind`];
  const late = followers.filter(({ behind }) => behind);
  const [worst] = late.sort((a, b) => b.minutes_behind - a.minutes_behind);
  const [alert] = alerts;
  const urgent = alerts.some(({ page_worthy }) => page_worthy);
  const detection = live?.detections.find(({ article }) => article.headline !== null) ?? live?.detections[0];
  return html`<div class="answers">
    ${tile(
      ['Is anything missing?', linkTo('windows')],
      isReadable ? missing(answer, windows) : NOT_KNOWN,
      isReadable ? enabled.map((name) => reach(name, exports[name])) : UNREADABLE,
    )}
    ${tile(
      ['Who is behind?', linkTo('customers')],
      isReadable ? behind : NOT_KNOWN,
      worst === undefined
        ? `${counted(keys.active, 'active key')}, ${grouped(keys.used_in_last_day)} used in the last day`
        : [foreign(worst.name), `: ${counted(worst.rows_behind, 'row')} behind`],
    )}
    ${tile(
      ['What do I do?', linkTo('manual', {}, 'alerts')],
      alert ? [urgent ? 'failed' : 'warning', `Look at: ${alert.name}`] : ['done', 'Nothing'],
      alert
        ? `${counted(alerts.length, 'open alert')}; ${urgent ? 'needs someone now' : 'it can wait'}`
        : 'No alert is open',
    )}
    ${tile(
      ['Show me a detection', linkTo('detections', {}, detection?.id)],
      detection
        ? ['done', foreign(titleOf(detection))]
        : ['abandoned', isReadable ? 'None yet' : 'Not known'],
      detection
        ? [`${detection.strength.band}, first detected `, age(detection.first_detected_at)]
        : isReadable && 'They appear as export files are read',
    )}
  </div>`;
}

function tile([question, href]: readonly [string, string], [name, answer]: Shown, more: Children): VNode {
  return html`<a class="tile" href=${href}>${soft(question)}
    <strong class="answer">${mark(name)} ${answer}</strong>${soft(more)}</a>`;
}

function alerts({ alerts: all }: Answer): VNode {
  const alertLine = ({ name, page_worthy, since, detail, what_to_do }: Answer['alerts'][number]) =>
    html`<article class="alert" key=${`${name} ${detail}`}>
      <p>
        ${state(page_worthy ? 'failed' : 'warning', html`<strong>${name}</strong>`)}${' '}
        ${soft([page_worthy && 'needs someone now, ', 'noticed ', age(since)])}
      </p>
      <p>${foreign(detail)}</p>
      <p class="soft">${withCommands(what_to_do)}</p>
    </article>`;
  return html`<div class="across">${panel(`Alerts: ${grouped(all.length)} open`, all.map(alertLine), { help: 'alerts' })}</div>`;
}

function system(answer: Answer): Facts {
  const { database, version } = answer;
  return [
    ...shown(systemLines(answer)),
    ['Database', `${bytes(database.bytes)}, ${counted(database.versions, 'version')} of detections`],
    ['Log', bytes(database.log_bytes)],
    ['Version', version],
  ];
}

const shown = (lines: readonly Line[]): Facts =>
  lines.map(([label, text, mark]) => [labelOf(label), mark ? state(mark, foreign(text)) : foreign(text)]);

const JOB_MARKS = { running: 'held', done: 'done', failed: 'failed' } as const;

function jobTable(jobs: Jobs | undefined): VNode {
  const rows = jobs?.jobs ?? [];
  return table(
    { label: 'Jobs begun from consoles', rows, key: ({ id }) => id, empty: 'None since the start.' },
    ['Job', ({ operation, subject }) => [operation, ' ', soft(subject)]],
    ['State', (job) => state(JOB_MARKS[job.state], job.state)],
    ['Result', ({ text }) => foreign(text), 'wide'],
    ['Begun', ({ started_at, by }) => [age(started_at), soft([' by ', foreign(by)])]],
  );
}
