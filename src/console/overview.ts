/** The first screen. Is anything missing? Who is behind? What do I do? Show me a detection. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Overview as Answer, WindowMap } from '../admin/console/api.ts';
import type { Customers, DetectionsPage } from '../admin/console/api-records.ts';
import { Curve } from './curve.ts';
import { DetectionRows, titleOf } from './detection-rows.ts';
import { count } from './format.ts';
import { EXPORTS } from './letters.ts';
import {
  Alerts,
  Exports,
  Followers,
  followersOf,
  Ingest,
  JobList,
  NotApplied,
  notRead,
} from './overview-panels.ts';
import { Age, type Children, Foreign, Heading, Mark, type MarkName, Panel, Read } from './parts.ts';
import { linkTo } from './route.ts';
import { type Reading, useReading } from './server.ts';
import { System } from './system.ts';

const NEWEST = 6;

export function Overview({ reading }: { reading: Reading<Answer> }): VNode {
  const windows = useReading<WindowMap>('/console/windows', ['windows']);
  const customers = useReading<Customers>('/console/customers', ['customers']);
  const live = useReading<DetectionsPage>(`/console/detections/live?limit=${NEWEST}`, ['detections']);
  return html`<${Heading}>Overview</${Heading}>
    <${Read} of=${reading}>${(answer: Answer) => html`
      <${Health} of=${answer} />
      ${answer.database.unreadable !== null && html`<p class="failure" role="alert"><${Mark} name="failed" /> The database cannot be read now: ${answer.database.unreadable}</p>`}
      <${Answers} of=${answer} customers=${customers.data} live=${live.data} />
      <div class="columns">
        ${answer.alerts.length > 0 && html`<${Alerts} alerts=${answer.alerts} />`}
        <${Exports} exports=${answer.exports} map=${windows.data} />
        <${Followers} customers=${customers} />
        <${Panel} title="Newest detections" class="half" aside=${html`<a href=${linkTo('detections')}>Live stream</a>`}>
          <${Read} of=${live}>${(page: DetectionsPage) => html`<${DetectionRows} rows=${page.detections.slice(0, NEWEST)} label="Newest detections" empty="None yet. They appear as export files are read." />`}</${Read}>
        </${Panel}>
        <${NotApplied} files=${answer.not_applied} />
        <${Activity} of=${answer} />
        <${Ingest} of=${answer} />
        <${System} of=${answer} />
        <${JobList} />
      </div>`}</${Read}>`;
}

function Health({ of: { health } }: { of: Answer }): VNode {
  const [mark, text]: readonly [MarkName, string] =
    health.paused_since !== null
      ? ['held', 'Paused']
      : health.status === 'ok'
        ? ['done', 'Healthy']
        : ['failed', 'Degraded'];
  return html`<p class="lead health"><${Mark} name=${mark} /><strong>${text}.</strong> <span>${health.reason}</span></p>`;
}

/** The four answers, each a way to more. */
function Answers({
  of,
  customers,
  live,
}: {
  of: Answer;
  customers: Customers | undefined;
  live: DetectionsPage | undefined;
}): VNode {
  const open = EXPORTS.reduce((sum, name) => sum + notRead(of.exports[name]), 0);
  const { behind, active } = of.keys;
  const urgent = of.alerts.filter(({ page_worthy }) => page_worthy).length;
  const newest = live?.detections.find(({ article }) => article.headline !== null) ?? live?.detections[0];
  const worst =
    customers === undefined ? undefined : followersOf(customers).find(({ follower }) => follower.behind);
  return html`<div class="answers">
    <${Tile} question="Is anything missing?" href=${linkTo('windows')} mark=${open === 0 ? 'done' : 'missing'} answer=${open === 0 ? 'Nothing is missing' : `${count(open, 'window')} without data`}>
      ${EXPORTS.filter((name) => of.exports[name].enabled).map((name) => html`<div>${name}, newest window <${Age} at=${of.exports[name].newest_done} never="none yet" /></div>`)}
    </${Tile}>
    <${Tile} question="Who is behind?" href=${linkTo('customers')} mark=${behind === 0 ? 'done' : 'warning'} answer=${behind === 0 ? 'Nobody is behind' : `${count(behind, 'key')} behind`}>
      ${worst === undefined ? html`${count(active, 'active key')}, ${count(of.keys.used_in_last_day)} used in the last day` : html`<${Foreign} text=${worst.name} />: ${count(worst.follower.rows_behind, 'row')} behind`}
    </${Tile}>
    <${Tile} question="What do I do?" href=${of.alerts.length === 0 ? linkTo('manual', {}, 'alerts') : '#alerts'} mark=${of.alerts.length === 0 ? 'done' : urgent > 0 ? 'failed' : 'warning'} answer=${of.alerts.length === 0 ? 'Nothing' : count(of.alerts.length, 'open alert')}>
      ${of.alerts.length === 0 ? 'No alert is open' : `${of.alerts[0]?.name}${urgent > 0 ? '; needs someone now' : ''}`}
    </${Tile}>
    <${Tile} question="Show me a detection" href=${newest === undefined ? linkTo('detections') : linkTo('detections', {}, newest.id)} mark=${newest === undefined ? 'abandoned' : 'done'} answer=${newest === undefined ? 'None yet' : html`<${Foreign} text=${titleOf(newest)} class="clipped" />`}>
      ${newest === undefined ? 'They appear as export files are read' : html`${newest.strength.band}, first detected <${Age} at=${newest.first_detected_at} />`}
    </${Tile}>
  </div>`;
}

interface TileProps {
  readonly question: string;
  readonly href: string;
  readonly mark: MarkName;
  readonly answer: Children;
  readonly children?: Children;
}

function Tile({ question, href, mark, answer, children }: TileProps): VNode {
  const onClick = (event: MouseEvent) => {
    // A place on this page, not a view.
    if (href !== '#alerts') return;
    event.preventDefault();
    document.getElementById('alerts')?.focus();
  };
  return html`<a class="tile" href=${href} onClick=${onClick}><span class="question">${question}</span><strong class="answer"><${Mark} name=${mark} />${answer}</strong><span class="soft more-about">${children}</span></a>`;
}

function Activity({ of: { minutes } }: { of: Answer }): VNode {
  const fromMs = Date.parse(minutes.from);
  return html`<${Panel} title="Last 24 hours" class="half" help="monitoring"><div class="curves">
    <${Curve} title="Rows read from exports" unit="rows" fromMs=${fromMs} minutes=${minutes.rows_ingested} />
    <${Curve} title="Rows served to clients" unit="rows" fromMs=${fromMs} minutes=${minutes.rows_served} />
    <${Curve} title="Requests" unit="requests" fromMs=${fromMs} minutes=${minutes.requests} />
    <${Curve} title="Refused requests" unit="refused requests" fromMs=${fromMs} minutes=${minutes.refused} />
  </div></${Panel}>`;
}
