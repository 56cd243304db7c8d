/** Detections as a table; one detection with its versions side by side. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DetectionDetail, DetectionEntry } from '../admin/console/api-records.ts';
import { bar } from './customers.ts';
import { count, shown } from './format.ts';
import { type Children, code, facts, foreign, Heading, outside, panel, read, table, when } from './parts.ts';
import { linkTo, queryOf } from './route.ts';
import { useReading } from './server.ts';

export function detectionRows(rows: readonly DetectionEntry[], label: string, empty: string): VNode {
  return table<DetectionEntry>(
    label,
    rows,
    [
      ['Detection', titleLink, 'wide'],
      ['Found on', placeOf, 'medium'],
      ['Subscription', (one) => `${one.subscription_id}`, 'number'],
      ['Type', (one) => one.content_type],
      ['Strength', strength],
      ['First detected (UTC)', (one) => when(one.first_detected_at)],
    ],
    { key: ({ id, version }) => `${id} ${version}`, empty },
  );
}

const HEADLINE_MAX = 200;

/** The headline, or the id if there is none. */
export function titleOf({ id, article: { headline } }: DetectionEntry): string {
  const title = (headline ?? '').trim() || id;
  return title.length > HEADLINE_MAX ? `${title.slice(0, HEADLINE_MAX)}…` : title;
}

function titleLink(of: DetectionEntry): VNode {
  const title = titleOf(of);
  const id = title === of.id ? '' : `${of.id} `;
  return html`<a class="title" href=${linkTo('detections', {}, of.id)}>${foreign(title)}</a>
    <span class="soft mono">${id}version ${of.version}</span>`;
}

function placeOf({ article: { publisher, domain } }: DetectionEntry): VNode {
  return foreign(publisher?.name ?? domain ?? 'unknown');
}

const FULL = 100;

/** The score as a bar, with the band: a text's score goes to 100, a photo's to 99. */
function strength({ strength: { band, score } }: DetectionEntry): VNode {
  return bar(score, FULL, `${band} ${Math.round(score)}`);
}

export function DetectionView({ id }: { id: string }): VNode {
  const reading = useReading<DetectionDetail>(`/console/detections/one${queryOf({ id })}`, ['detections']);
  const versions = (_: DetectionDetail, pages: readonly DetectionDetail[]) =>
    html`<${Versions} of=${pages.flatMap((page) => page.versions)} />`;
  const [data] = reading.pages;
  return html`<p class="back"><a href=${linkTo('detections')}>Detections</a></p>
    <${Heading} about=${id}>${data === undefined ? id : foreign(titleOf(data.current))}</${Heading}>
    ${data !== undefined && found(data)}
    ${panel('Versions, the newest first', read(reading, versions, 'Search for older versions'))}
    ${data !== undefined && panel('The same by the API', code(data.curl, 'the call'), { help: 'change-stream' })}`;
}

function found({ current, account }: DetectionDetail): VNode {
  const { article, source, subscription_id, first_detected_estimated: isEstimated } = current;
  const photo = source.image_url;
  return panel(
    'What was found',
    facts([
      ['Item', foreign(source.id ?? `number ${source.internal_id}`, 'mono')],
      ['Found on', placeOf(current)],
      ['Article', outside(article.url, `number ${article.id}`)],
      ['Strength', strength(current)],
      ['First detected', [when(current.first_detected_at), ' UTC', isEstimated && ', estimated']],
      ['Last scored', [when(current.last_scored_at), ' UTC']],
      ['Subscription', `${subscription_id}${account === null ? '' : `, ${account.name}`}`],
      ['Id', foreign(current.id, 'mono')],
      ...(typeof photo === 'string' ? [['Photo', outside(photo)] as const] : []),
    ]),
  );
}

type Version = DetectionDetail['versions'][number];

const SIDE_BY_SIDE = 4;

function Versions({ of }: { of: readonly Version[] }): VNode {
  const [isAll, setIsAll] = useState(false);
  const columns = isAll ? of : of.slice(0, SIDE_BY_SIDE);
  const paths = new Set(columns.flatMap(({ detection }) => pathsOf(detection)));
  const rows = [...paths].filter((path) => path !== 'event' && path !== 'version');
  const head = ({ version, at, changed }: Version) =>
    html`<th scope="col">Version ${count(version)}<br />${at === null ? 'just delivered' : html`delivered ${when(at)}`}<br />${changed.length === 0 ? 'first one found' : count(changed.length, 'change')}</th>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Versions side by side"><table class="versions">
      <thead><tr><th scope="col">Field</th>${columns.map(head)}</tr></thead>
      <tbody>${rows.map((path) => html`<tr key=${path}><th scope="row" class="mono">${path}</th>${columns.map((one) => cellOf(one, path))}</tr>`)}</tbody>
    </table></div>
    ${of.length > columns.length && html`<button type="button" class="more" onClick=${() => setIsAll(true)}>Show all ${count(of.length)} versions</button> `}`;
}

function cellOf({ detection, changed }: Version, path: string): Children {
  const isChanged = changed.includes(path);
  const spoken = isChanged && html`<span class="hidden">changed: </span>`;
  return html`<td class=${isChanged && 'changed'}>${spoken}${foreign(textAt(detection, path))}</td>`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The dotted path of every value, as the contract names fields. */
function pathsOf(value: unknown, path = ''): string[] {
  if (!isObject(value)) return [path];
  return Object.entries(value).flatMap(([name, member]) =>
    pathsOf(member, path === '' ? name : `${path}.${name}`),
  );
}

function textAt(detection: DetectionEntry, path: string): string {
  let value: unknown = detection;
  for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined;
  if (value === undefined) return '';
  return typeof value === 'string' ? value : shown(value);
}
