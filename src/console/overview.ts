/** The first view: is anything missing, who is behind, what to do, a detection; below, the state of everything. */

import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { ACTIONS } from '../admin/console/action-table.ts';
import type {
  AlertState,
  Overview as Answer,
  ExportName,
  ExportState,
  FileEntry,
  Job,
  Jobs,
  WindowMap,
} from '../admin/console/api.ts';
import type { Customers, DetectionsPage, Follower, KeyEntry } from '../admin/console/api-records.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { actionButton, actions } from './action.ts';
import { labelWithSubject } from './action-texts.ts';
import { Curve } from './curve.ts';
import { following } from './customers.ts';
import { detectionRows, titleOf } from './detection.ts';
import { onTop } from './detections.ts';
import { firstError, NOT_APPLIED, outcome } from './files.ts';
import { bytes, clock, count, span, WINDOW_MS } from './format.ts';
import {
  age,
  type Children,
  facts,
  failed,
  foreign,
  type MarkName,
  mark,
  panel,
  read,
  soft,
  state,
  table,
} from './parts.ts';
import { linkTo } from './route.ts';
import { type Reading, useReading } from './server.ts';
import { cellsOf, drawn } from './window-map.ts';

const NEWEST = 6;
const FOLLOWERS = 5;
const FILES = 5;
const ALERT_ACTIONS = 3;

export function Overview({ overview }: { overview: Reading<Answer> }): VNode {
  const windows = useReading<WindowMap>('/console/windows', ['windows']);
  const customers = useReading<Customers>('/console/customers', ['customers']);
  const live = useReading<DetectionsPage>(`/console/detections/live?limit=${NEWEST}`, ['detections'], onTop);
  const jobs = useReading<Jobs>('/console/jobs', ['jobs']);
  return read(
    overview,
    (answer) => html`${health(answer)}
      ${tiles(answer, customers.pages[0], live.pages[0])}
      <div class="columns">
        ${answer.alerts.length > 0 && alerts(answer)}
        ${exportsPanel(answer, windows.pages[0])}
        ${followers(customers)}
        ${newest(live)}
        ${answer.not_applied.length > 0 && notApplied(answer.not_applied)}
        ${activity(answer)}
        ${ingest(answer)}
        ${system(answer)}
        ${jobList(jobs.pages[0]?.jobs ?? [])}
      </div>`,
  );
}

/** Windows of an export without data. */
function notRead({ not_read: { failed, missing, abandoned, not_arrived } }: ExportState): number {
  return failed + missing + abandoned + not_arrived;
}

/** Windows of both exports without data. */
export function missingIn(exports: Answer['exports']): number {
  return EXPORT_NAMES.reduce((sum, name) => sum + notRead(exports[name]), 0);
}

function health({ health: { status, reason, paused_since }, database: { unreadable } }: Answer): VNode {
  const isOk = status === 'ok';
  const text = html`<strong>${paused_since !== null ? 'Paused' : isOk ? 'Healthy' : 'Degraded'}.</strong> ${reason}`;
  return html`<p class="lead health">${state(paused_since !== null ? 'held' : isOk ? 'done' : 'failed', text)}</p>
    ${unreadable !== null && failed(`The database cannot be read now: ${unreadable}`)}`;
}

/** The four answers, each a link to more. */
function tiles(of: Answer, customers: Customers | undefined, live: DetectionsPage | undefined): VNode {
  const { alerts, keys } = of;
  const open = missingIn(of.exports);
  const enabled = EXPORT_NAMES.filter((name) => of.exports[name].enabled);
  const worst = followersOf(customers).find(({ follower }) => follower.behind);
  const urgent = alerts.some(({ page_worthy }) => page_worthy);
  const isCalm = alerts.length === 0;
  const detection = live?.detections.find(({ article }) => article.headline !== null) ?? live?.detections[0];
  return html`<div class="answers">
    ${tile('Is anything missing?', linkTo('windows'), open === 0 ? 'done' : 'missing', [
      open === 0 ? 'Nothing is missing' : `${count(open, 'window')} without data`,
      enabled.map(
        (name) => html`<div>${name}, newest window ${age(of.exports[name].newest_done, 'none yet')}</div>`,
      ),
    ])}
    ${tile('Who is behind?', linkTo('customers'), keys.behind === 0 ? 'done' : 'warning', [
      keys.behind === 0 ? 'Nobody is behind' : `${count(keys.behind, 'key')} behind`,
      worst === undefined
        ? `${count(keys.active, 'active key')}, ${count(keys.used_in_last_day)} used in the last day`
        : [foreign(worst.name), `: ${count(worst.follower.rows_behind, 'row')} behind`],
    ])}
    ${tile(
      'What do I do?',
      isCalm ? linkTo('manual', {}, 'alerts') : ALERTS,
      isCalm ? 'done' : urgent ? 'failed' : 'warning',
      [
        isCalm ? 'Nothing' : count(alerts.length, 'open alert'),
        isCalm ? 'No alert is open' : [alerts[0]?.name, urgent && '; needs someone now'],
      ],
    )}
    ${tile('Show me a detection', linkTo('detections', {}, detection?.id), detection ? 'done' : 'abandoned', [
      detection === undefined ? 'None yet' : foreign(titleOf(detection)),
      detection === undefined
        ? 'They appear as export files are read'
        : [`${detection.strength.band}, first detected `, age(detection.first_detected_at)],
    ])}
  </div>`;
}

/** On this page. */
const ALERTS = '#alerts';

function tile(
  question: string,
  href: string,
  name: MarkName,
  [answer, more]: readonly [Children, Children],
): VNode {
  const onClick = (event: MouseEvent) => {
    if (href !== ALERTS) return;
    event.preventDefault();
    document.querySelector<HTMLElement>(ALERTS)?.focus();
  };
  return html`<a class="tile" href=${href} onClick=${onClick}>${soft(question)}
    <strong class="answer">${mark(name)} ${answer}</strong>${soft(more)}</a>`;
}

function alerts({ alerts: all }: Answer): VNode {
  const one = ({ name, page_worthy, since, detail, what_to_do, actions: of }: AlertState) =>
    html`<article class="alert" key=${`${name} ${detail}`}>
      <p>${state(page_worthy ? 'failed' : 'warning', html`<strong>${name}</strong>`)} ${soft([page_worthy && 'needs someone now, ', 'since ', age(since)])}</p>
      <p>${foreign(detail)}</p>
      <p class="soft">${what_to_do}</p>
      ${actions(of.slice(0, ALERT_ACTIONS), undefined, labelWithSubject)}
    </article>`;
  return html`<div class="across" id="alerts" tabindex="-1">${panel(`Alerts: ${count(all.length)} open`, all.map(one), { help: 'alerts' })}</div>`;
}

function exportsPanel({ exports }: Answer, map: WindowMap | undefined): VNode {
  const lines = EXPORT_NAMES.map(
    (name) => html`<div class="export"><h3>${name}</h3>${exportLines(name, exports[name], map)}</div>`,
  );
  const aside = html`<a href=${linkTo('windows')}>All windows</a>`;
  return panel('Exports', lines, { help: 'export-format', aside });
}

function exportLines(name: ExportName, of: ExportState, map: WindowMap | undefined): VNode {
  if (!of.enabled) return html`<p class="soft">Switched off in the settings.</p>`;
  const { newest_done: newest, newest_late_seconds: late, not_read } = of;
  const open = notRead(of);
  const reasons = Object.entries(not_read).filter(([, windows]) => windows > 0);
  const why = reasons.map(([reason, windows]) => `${count(windows)} ${reason.replace('_', ' ')}`).join(', ');
  const href = linkTo('windows', { export: name });
  const endMs = Date.parse(newest ?? '');
  const missing = html`<a href=${href}>${count(open, 'window')} before it without data</a>: ${why}`;
  return html`<p>${newest === null ? 'No window has been read yet.' : html`Newest window read: <strong>${clock(endMs - WINDOW_MS)} to ${clock(endMs)} UTC</strong>, ${age(newest)}`}</p>
    <p>${open === 0 ? state('done', 'Nothing missing before it') : state('missing', missing)}</p>
    ${late !== null && html`<p class="soft">Read ${span(late * 1000)} after it ended</p>`}
    ${map !== undefined && strip(map, name, href)}`;
}

const STRIP = 144;

/** The windows of the last day; the map has the rest, and works with the keyboard. */
function strip(map: WindowMap, name: ExportName, href: string): VNode {
  const known = cellsOf(map, name).filter(({ startMs }) => startMs + WINDOW_MS <= Date.parse(map.at));
  const cells = known.slice(-STRIP);
  const open = cells.filter(({ letter }) => !'de-w'.includes(letter)).length;
  const label = `${name}, the windows of the last day: ${open === 0 ? 'none is open' : `${count(open)} without data`}. Opens the map.`;
  const [first] = cells;
  return html`<a class="strip" href=${href}><svg class="curve" viewBox=${`0 0 ${STRIP * 7} 11`} preserveAspectRatio="none" role="img" aria-label=${label}>${drawn(cells, (index) => [index * 7, 0], [6, 11])}</svg></a>
    <div class="row axis" aria-hidden="true"><span>${first && clock(first.startMs)}</span><span>now</span></div>`;
}

interface FollowingKey extends KeyEntry {
  readonly follower: Follower;
  readonly account: string;
}

/** Keys that follow the stream, the furthest behind first. */
function followersOf(customers: Customers | undefined): FollowingKey[] {
  const keys = (customers?.accounts ?? []).flatMap(({ name: account, keys }) =>
    keys.flatMap((key) => {
      const { follower, status } = key;
      return status === 'active' && follower !== null ? [{ ...key, follower, account }] : [];
    }),
  );
  const furthest = ({ follower: a }: FollowingKey, { follower: b }: FollowingKey) =>
    b.minutes_behind - a.minutes_behind || b.rows_behind - a.rows_behind;
  return keys.sort(furthest);
}

function followers(customers: Reading<Customers>): VNode {
  const rows = (answer: Customers) =>
    table<FollowingKey>(
      'Followers',
      followersOf(answer).slice(0, FOLLOWERS),
      [
        ['Key', ({ name, account }) => [foreign(name), html`<br />`, foreign(account, 'soft')]],
        ['Follows the stream', ({ follower }) => following(follower)],
        ['Rows today', ({ rows_today }) => count(rows_today), 'number'],
      ],
      { key: ({ id }) => id, empty: 'No key has asked for changes yet.' },
    );
  const aside = html`<a href=${linkTo('customers')}>All customers</a>`;
  return panel('Followers', read(customers, rows), { help: 'change-stream', aside });
}

function newest(live: Reading<DetectionsPage>): VNode {
  const rows = ({ detections }: DetectionsPage) =>
    detectionRows(
      detections.slice(0, NEWEST),
      'Newest detections',
      'None yet. They appear as export files are read.',
    );
  const aside = html`<a href=${linkTo('detections')}>Live stream</a>`;
  return panel('Newest detections', read(live, rows), { look: 'half', aside });
}

function notApplied(files: readonly FileEntry[]): VNode {
  const lines = files.slice(0, FILES).map(({ file, outcome: of, report }) => {
    const why = foreign(firstError(report) ?? report.reason, 'soft');
    return html`<p>${outcome(of)} ${foreign(file, 'mono')} ${why}</p>`;
  });
  const aside = html`<a href=${linkTo('files', { outcome: NOT_APPLIED })}>All of them</a>`;
  return panel('Files of the last day that were not applied', lines, {
    look: 'across',
    help: 'operations',
    aside,
  });
}

function activity({ minutes }: Answer): VNode {
  const curve = (title: string, unit: string, values: readonly number[]) =>
    html`<${Curve} title=${title} unit=${unit} fromMs=${Date.parse(minutes.from)} minutes=${values} />`;
  const curves = html`<div class="curves">
    ${curve('Rows read from exports', 'rows', minutes.rows_ingested)}
    ${curve('Rows served to clients', 'rows', minutes.rows_served)}
    ${curve('Requests', 'requests', minutes.requests)}
    ${curve('Refused requests', 'refused requests', minutes.refused)}
  </div>`;
  return panel('Last 24 hours', curves, { look: 'half', help: 'monitoring' });
}

function ingest({ ingest: { waiting, waiting_files, reading, applying, drop }, health }: Answer): VNode {
  const since = health.paused_since;
  const more = waiting - waiting_files.length;
  const lines = html`${since !== null && html`<p>${state('held', ['Paused ', age(since)])}</p>`}
    <p>${reading === null ? 'No file is being read.' : html`Reading ${foreign(reading.file, 'mono')}, ${count(reading.rows, 'row')} so far`}</p>
    ${applying.map(({ file, rows, rows_applied: applied }) => html`<p>${foreign(file, 'mono')}: ${count(applied)} of ${count(rows, 'row')} applied<progress max=${Math.max(1, rows)} value=${applied} aria-label=${`Progress of ${file}`}></progress></p>`)}
    <p>${waiting === 0 ? 'No file waits.' : `${count(waiting, 'file waits', 'files wait')} in the drop folder.`}</p>
    <ul>${waiting_files.map((file) => html`<li>${foreign(file, 'mono')}</li>`)}${more > 0 && html`<li class="soft">and ${count(more)} more</li>`}</ul>
    <p class="soft">Drop folder <span class="mono">${drop}</span></p>`;
  const aside = actionButton({ kind: since === null ? 'ingest-pause' : 'ingest-resume' });
  return panel('Ingest', lines, { help: 'operations', aside });
}

const DISK_LOW = 0.05;

function system({ database, disks, version, backup, scrub }: Answer): VNode {
  const disk = ({ folder, free_bytes: free, bytes: all }: Answer['disks'][number]) => {
    const text = [`${bytes(free)} free of ${bytes(all)}`, foreign(` ${folder}`, 'soft')];
    return ['Disk', state(free < all * DISK_LOW ? 'warning' : 'done', text)] as const;
  };
  const lines = facts([
    ...disks.map(disk),
    ['Database', `${bytes(database.bytes)}, ${count(database.versions, 'version')} of detections`],
    ['Log', bytes(database.log_bytes)],
    ['Backup', backupText(backup)],
    ['Verified', scrubText(scrub)],
    ['Version', version],
  ]);
  return panel('System', lines, { help: 'growth' });
}

function backupText(of: Answer['backup']): VNode {
  if (of === null) return state('warning', 'none is scheduled');
  const text = [age(of.newest_at, 'none yet'), soft([', restore rehearsed ', age(of.rehearsed_at)])];
  return state(of.newest_at === null ? 'warning' : 'done', text);
}

function scrubText(of: Answer['scrub']): Children {
  if (of === null) return 'not yet';
  const { at, findings, not_compared } = of;
  const result = findings > 0 ? count(findings, 'difference') : (not_compared ?? 'no difference');
  return state(findings > 0 ? 'failed' : 'done', [age(at), `, ${result}`]);
}

const JOB_MARKS = { running: 'held', done: 'done', failed: 'failed' } as const;

function jobList(jobs: readonly Job[]): VNode {
  const rows = table<Job>(
    'Jobs begun from consoles',
    jobs,
    [
      ['Job', ({ kind, subject }) => [ACTIONS[kind].label, ' ', soft(subject)]],
      ['State', (one) => state(JOB_MARKS[one.state], one.state)],
      ['Result', ({ text }) => foreign(text), 'wide'],
      ['Begun', ({ started_at, by }) => [age(started_at), soft([' by ', foreign(by)])]],
    ],
    { key: ({ id }) => id, empty: 'None was begun from a console since the start.' },
  );
  const aside = [actionButton({ kind: 'backup' }), actionButton({ kind: 'scrub' })];
  return panel('Jobs', rows, { look: 'across', help: 'backup', aside });
}
