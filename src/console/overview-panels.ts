/** The panels of the overview: alerts, exports, followers, ingest, jobs. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type {
  Action,
  AlertState,
  ExportName,
  ExportState,
  FileEntry,
  Job,
  Jobs,
  Overview,
  WindowMap,
} from '../admin/console/api.ts';
import type { Customers, Follower, KeyEntry } from '../admin/console/api-records.ts';
import { ActionButton, Actions } from './action.ts';
import { actionText } from './action-texts.ts';
import { Following } from './customers.ts';
import { firstError, Outcome } from './file-report.ts';
import { clock, count, span, WINDOW_MS } from './format.ts';
import { cellsOf, EXPORTS, LETTERS } from './letters.ts';
import { Age, Foreign, type MarkName, Panel, Read, State, Table } from './parts.ts';
import { linkTo } from './route.ts';
import { type Reading, useReading } from './server.ts';
import { useIsReadOnly } from './session.ts';

export function Alerts({ alerts }: { alerts: readonly AlertState[] }): VNode {
  return html`<div class="across" id="alerts" tabindex="-1"><${Panel} title=${`Alerts: ${count(alerts.length)} open`} help="alerts">
    ${alerts.map(
      (alert) => html`<article class="alert" key=${`${alert.name} ${alert.detail}`}>
        <p><${State} name=${alert.page_worthy ? 'failed' : 'warning'}><strong>${alert.name}</strong></${State}> <span class="soft">${alert.page_worthy && 'needs someone now, '}since <${Age} at=${alert.since} /></span></p>
        <p><${Foreign} text=${alert.detail} /></p>
        <p class="soft">${alert.what_to_do}</p>
        <${Actions} of=${alert.actions.slice(0, ALERT_ACTIONS)} hasSubject />
      </article>`,
    )}
  </${Panel}></div>`;
}

/** Windows of an export that brought nothing. */
export function notRead({ not_read: { failed, missing, abandoned, not_arrived } }: ExportState): number {
  return failed + missing + abandoned + not_arrived;
}

export function Exports({
  exports,
  map,
}: {
  exports: Overview['exports'];
  map: WindowMap | undefined;
}): VNode {
  return html`<${Panel} title="Exports" help="export-format" aside=${html`<a href=${linkTo('windows')}>All windows</a>`}>
    ${EXPORTS.map((name) => html`<${ExportLine} key=${name} name=${name} state=${exports[name]} map=${map} />`)}
  </${Panel}>`;
}

function ExportLine({
  name,
  state,
  map,
}: {
  name: ExportName;
  state: ExportState;
  map: WindowMap | undefined;
}): VNode {
  if (!state.enabled)
    return html`<div class="export"><h3>${name}</h3><p class="soft">Switched off in the settings.</p></div>`;
  const { newest_done, newest_late_seconds, not_read } = state;
  const open = notRead(state);
  const reasons = [
    [not_read.failed, 'failed'],
    [not_read.missing, 'missing'],
    [not_read.not_arrived, 'not arrived'],
    [not_read.abandoned, 'abandoned'],
  ] as const;
  const detail = reasons
    .flatMap(([windows, why]) => (windows === 0 ? [] : [`${count(windows)} ${why}`]))
    .join(', ');
  const ms = Date.parse(newest_done ?? '');
  return html`<div class="export">
    <h3>${name}</h3>
    <p>${newest_done === null ? 'No window has been read yet.' : html`Newest window read: <strong>${clock(ms - WINDOW_MS)} to ${clock(ms)} UTC</strong>, <${Age} at=${newest_done} />`}</p>
    <p><${State} name=${open === 0 ? 'done' : 'missing'}>${open === 0 ? 'Nothing missing before it' : html`<a href=${linkTo('windows', { export: name })}>${count(open, 'window')} before it without data</a>: ${detail}`}</${State}></p>
    ${newest_late_seconds !== null && html`<p class="soft">Read ${span(newest_late_seconds * 1000)} after it ended</p>`}
    ${map !== undefined && html`<${Strip} map=${map} name=${name} />`}
  </div>`;
}

const STRIP = 144;

/** The last day, a cell a window; the map has the rest and the keyboard. */
function Strip({ map, name }: { map: WindowMap; name: ExportName }): VNode {
  const known = cellsOf(map, name).filter(({ startMs }) => startMs + WINDOW_MS <= Date.parse(map.at));
  const cells = known.slice(-STRIP);
  const open = cells.filter(({ letter }) => !'de-w'.includes(letter)).length;
  const [first] = cells;
  return html`<a class="strip" href=${linkTo('windows', { export: name })}><svg viewBox=${`0 0 ${STRIP} 10`} preserveAspectRatio="none" role="img" aria-label=${`${name}, the windows of the last day: ${open === 0 ? 'none is open' : `${count(open)} without data`}. Opens the map.`}>
    ${cells.map(({ letter }, at) => {
      const { look } = LETTERS[letter];
      const isLow = look === 'none' || look === 'due' || look === 'empty' || look === 'abandoned';
      return html`<rect class=${`w-${look}`} x=${at + 0.1} y=${isLow ? 7 : 0} width="0.8" height=${isLow ? 3 : 10} />`;
    })}
  </svg></a><div class="axis" aria-hidden="true"><span>${first !== undefined && clock(first.startMs)}</span><span>now</span></div>`;
}

interface FollowingKey extends KeyEntry {
  readonly follower: Follower;
  readonly account: string;
}

/** Keys that follow the stream, the furthest behind first. */
export function followersOf({ accounts }: Customers): FollowingKey[] {
  return accounts
    .flatMap(({ name: account, keys }) =>
      keys.flatMap((key) =>
        key.status === 'active' && key.follower !== null ? [{ ...key, follower: key.follower, account }] : [],
      ),
    )
    .sort(
      (a, b) =>
        b.follower.minutes_behind - a.follower.minutes_behind ||
        b.follower.rows_behind - a.follower.rows_behind,
    );
}

const FOLLOWERS = 5;
const NOT_APPLIED = 5;
const ALERT_ACTIONS = 3;

export function Followers({ customers }: { customers: Reading<Customers> }): VNode {
  const columns = [
    {
      title: 'Key',
      of: (one: FollowingKey) =>
        html`<${Foreign} text=${one.name} /><br /><span class="soft"><${Foreign} text=${one.account} /></span>`,
    },
    { title: 'Follows the stream', of: (one: FollowingKey) => html`<${Following} of=${one.follower} />` },
    { title: 'Rows today', isNumber: true, of: (one: FollowingKey) => count(one.rows_today) },
  ];
  return html`<${Panel} title="Followers" help="change-stream" aside=${html`<a href=${linkTo('customers')}>All customers</a>`}>
    <${Read} of=${customers}>${(answer: Customers) => html`<${Table} label="Followers" columns=${columns} rows=${followersOf(answer).slice(0, FOLLOWERS)} keyOf=${(one: FollowingKey) => one.id} empty="No key has asked for changes yet." />`}</${Read}>
  </${Panel}>`;
}

export function Ingest({ of: { ingest, health } }: { of: Overview }): VNode {
  const { waiting, waiting_files, reading, applying, drop } = ingest;
  const isReadOnly = useIsReadOnly();
  const action: Action = { kind: health.paused_since === null ? 'ingest-pause' : 'ingest-resume' };
  return html`<${Panel} title="Ingest" help="operations" aside=${!isReadOnly && html`<${ActionButton} action=${action} />`}>
    ${health.paused_since !== null && html`<p><${State} name="held">Paused <${Age} at=${health.paused_since} /></${State}></p>`}
    <p>${reading === null ? 'No file is being read.' : html`Reading <${Foreign} text=${reading.file} class="mono" />, ${count(reading.rows, 'row')} so far`}</p>
    ${applying.map(({ file, rows, rows_applied }) => html`<p key=${file}><${Foreign} text=${file} class="mono" />: ${count(rows_applied)} of ${count(rows, 'row')} applied<progress max=${Math.max(1, rows)} value=${rows_applied} aria-label=${`Progress of ${file}`}></progress></p>`)}
    <p>${waiting === 0 ? 'No file waits.' : `${count(waiting, 'file')} ${waiting === 1 ? 'waits' : 'wait'} in the drop folder.`}</p>
    ${waiting_files.length > 0 && html`<ul class="names">${waiting_files.map((file) => html`<li key=${file}><${Foreign} text=${file} class="mono" /></li>`)}${waiting > waiting_files.length && html`<li class="soft">and ${count(waiting - waiting_files.length)} more</li>`}</ul>`}
    <p class="soft">Drop folder <span class="mono">${drop}</span></p>
  </${Panel}>`;
}

/** What the last day brought and was not applied. */
export function NotApplied({ files }: { files: readonly FileEntry[] }): VNode | null {
  if (files.length === 0) return null;
  const link = linkTo('files', { outcome: 'failed,held,refused' });
  return html`<${Panel} title="Files of the last day that were not applied" class="across" help="operations" aside=${html`<a href=${link}>All of them</a>`}>
    ${files.slice(0, NOT_APPLIED).map((file) => html`<p class="line" key=${file.number}><${Outcome} of=${file.outcome} /> <${Foreign} text=${file.file} class="mono" /> <${Foreign} text=${firstError(file.report) ?? file.report.reason ?? ''} class="soft" /></p>`)}
  </${Panel}>`;
}

const JOB_MARKS: Readonly<Record<Job['state'], MarkName>> = {
  running: 'held',
  done: 'done',
  failed: 'failed',
};

/** What was begun from consoles and takes a while. */
export function JobList(): VNode | null {
  const { data } = useReading<Jobs>('/console/jobs', ['jobs']);
  const isReadOnly = useIsReadOnly();
  const columns = [
    { title: 'Job', of: (one: Job) => html`${labelOf(one.kind)} <span class="soft">${one.subject}</span>` },
    {
      title: 'State',
      of: (one: Job) => html`<${State} name=${JOB_MARKS[one.state]}>${one.state}</${State}>`,
    },
    { title: 'Result', class: 'wide', of: (one: Job) => html`<${Foreign} text=${one.text} />` },
    {
      title: 'Begun',
      of: (one: Job) =>
        html`<${Age} at=${one.started_at} /> <span class="soft">by <${Foreign} text=${one.by} /></span>`,
    },
  ];
  const buttons =
    !isReadOnly &&
    html`<${ActionButton} action=${{ kind: 'backup' }} /><${ActionButton} action=${{ kind: 'scrub' }} />`;
  return html`<${Panel} title="Jobs" class="across" help="backup" aside=${buttons}>
    <${Table} label="Jobs begun from consoles" columns=${columns} rows=${data?.jobs ?? []} keyOf=${(one: Job) => one.id} empty="None was begun from a console since the start." />
  </${Panel}>`;
}

function labelOf(kind: Job['kind']): string {
  if (kind === 'window-reset') return 'Reset';
  if (kind === 'window-accept') return 'Accept';
  if (kind === 'window-expect') return 'Expect windows';
  return actionText({ kind }).label;
}
