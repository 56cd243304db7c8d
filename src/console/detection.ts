/** One detection: where the item was found, and its versions side by side with what changed between them. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DetectionDetail, DetectionEntry } from '../admin/console/api-records.ts';
import { placeOf, Strength, titleOf } from './detection-rows.ts';
import { shown } from './file-report.ts';
import { count } from './format.ts';
import { Pages, usePages } from './list.ts';
import { Code, Foreign, Heading, Outside, Panel, When } from './parts.ts';
import { linkTo, queryOf } from './route.ts';

const SIDE_BY_SIDE = 4;

export function DetectionView({ id }: { id: string }): VNode {
  const pages = usePages<DetectionDetail>(`/console/detections/one${queryOf({ id })}`, ['detections']);
  const { data } = pages.first;
  const title = data === undefined ? id : html`<${Foreign} text=${titleOf(data.current)} />`;
  return html`<p class="back"><a href=${linkTo('detections')}>Detections</a></p>
    <${Heading} about=${id}>${title}</${Heading}>
    ${data !== undefined && html`<${Found} detail=${data} />`}
    <${Panel} title="Versions, the newest first">
      <${Pages} of=${pages} more="Look for older versions">${(all: readonly DetectionDetail[]) => html`<${Versions} of=${all.flatMap(({ versions }) => versions)} />`}</${Pages}>
    </${Panel}>
    ${data !== undefined && html`<${Panel} title="The same by the API" help="change-stream"><${Code} text=${data.curl} label="the call" /></${Panel}>`}`;
}

function Found({ detail }: { detail: DetectionDetail }): VNode {
  const { current, account } = detail;
  const { article, source, strength } = current;
  const fact = (title: string, value: unknown) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`;
  return html`<${Panel} title="What was found">
    <dl class="fact-grid">
      ${fact('Item', html`<${Foreign} text=${source.id ?? `number ${source.internal_id}`} class="mono" />`)}
      ${fact('Found on', html`<${Foreign} text=${placeOf(article)} />`)}
      ${fact('Article', html`<${Outside} href=${article.url}><${Foreign} text=${article.url ?? `number ${article.id}`} /></${Outside}>`)}
      ${fact('Strength', html`<${Strength} of=${strength} />`)}
      ${fact('First detected', html`<${When} at=${current.first_detected_at} /> UTC${current.first_detected_estimated && ', estimated'}`)}
      ${fact('Last scored', html`<${When} at=${current.last_scored_at} /> UTC`)}
      ${fact('Subscription', `${current.subscription_id}${account === null ? '' : `, ${account.name}`}`)}
      ${fact('Id', html`<span class="mono">${current.id}</span>`)}
      ${typeof source.image_url === 'string' && fact('Photo', html`<${Outside} href=${source.image_url} />`)}
    </dl>
  </${Panel}>`;
}

function Versions({ of }: { of: DetectionDetail['versions'] }): VNode {
  const [isAll, setIsAll] = useState(false);
  const columns = isAll ? of : of.slice(0, SIDE_BY_SIDE);
  const paths = new Set(columns.flatMap(({ detection }) => [...pathsOf(detection)]));
  const rows = [...paths].filter((path) => path !== 'event' && path !== 'version');
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Versions side by side"><table class="versions">
      <thead><tr><th scope="col">Field</th>${columns.map(
        ({ version, at, changed }) =>
          html`<th scope="col" key=${version}>Version ${count(version)}<br />${at === null ? 'just delivered' : html`delivered <${When} at=${at} />`}<br />${changed.length === 0 ? 'first one found' : count(changed.length, 'change')}</th>`,
      )}</tr></thead>
      <tbody>${rows.map(
        (path) =>
          html`<tr key=${path}><th scope="row" class="mono">${path}</th>${columns.map(
            ({ version, detection, changed }) => {
              const isChanged = changed.includes(path);
              return html`<td key=${version} class=${isChanged ? 'changed' : ''}>${isChanged && html`<span class="hidden">changed: </span>`}<${Foreign} text=${textAt(detection, path)} /></td>`;
            },
          )}</tr>`,
      )}</tbody>
    </table></div>
    ${of.length > columns.length && html`<button type="button" class="more" onClick=${() => setIsAll(true)}>Show all ${count(of.length)} versions</button> `}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Dotted paths of every value, as the contract names fields. */
function* pathsOf(value: unknown, path = ''): Generator<string> {
  if (!isObject(value)) yield path;
  else
    for (const [name, member] of Object.entries(value))
      yield* pathsOf(member, path === '' ? name : `${path}.${name}`);
}

function textAt(detection: DetectionEntry, path: string): string {
  let value: unknown = detection;
  for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined;
  if (value === undefined) return '';
  return typeof value === 'string' ? value : shown(value);
}
