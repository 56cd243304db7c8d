/** One detection: where the item was found, and its versions side by side with what changed between them. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DetectionDetail, DetectionEntry } from '../admin/console/api-records.ts';
import { placeOf, Strength, titleOf } from './detection-rows.ts';
import { shown } from './file-report.ts';
import { count } from './format.ts';
import { Code, Foreign, Heading, Outside, Panel, Read, When } from './parts.ts';
import { linkTo, queryOf } from './route.ts';
import { useReading } from './server.ts';

const SIDE_BY_SIDE = 4;

export function DetectionView({ id }: { id: string }): VNode {
  const reading = useReading<DetectionDetail>(`/console/detections/one${queryOf({ id })}`, ['detections']);
  return html`<p class="back"><a href=${linkTo('detections')}>Detections</a></p>
    <${Heading} about=${id}>${reading.data === undefined ? id : html`<${Foreign} text=${titleOf(reading.data.current)} />`}</${Heading}>
    <${Read} of=${reading}>${(
      detail: DetectionDetail,
    ) => html`<${Found} detail=${detail} /><${Versions} detail=${detail} />
      <${Panel} title="The same by the API" help="change-stream"><${Code} text=${detail.curl} label="the call" /></${Panel}>`}</${Read}>`;
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

function Versions({ detail }: { detail: DetectionDetail }): VNode {
  const [isAll, setIsAll] = useState(false);
  const { versions } = detail;
  const columns = isAll ? versions : versions.slice(0, SIDE_BY_SIDE);
  const paths = [...new Set(columns.flatMap(({ detection }) => [...pathsOf(detection)]))].filter(
    (path) => path !== 'event' && path !== 'version',
  );
  const title = versions.length === 1 ? '1 version' : `${count(versions.length)} versions, the newest first`;
  return html`<${Panel} title=${title}>
    <div class="scroll" tabindex="0" role="region" aria-label="Versions side by side"><table class="versions">
      <thead><tr><th scope="col">Field</th>${columns.map(({ version, at, changed }) => html`<th scope="col">Version ${count(version)}<br /><span class="soft">delivered <${When} at=${at} /></span><br /><span class="soft">${changed.length === 0 ? 'first seen' : count(changed.length, 'change')}</span></th>`)}</tr></thead>
      <tbody>${paths.map(
        (path) =>
          html`<tr><th scope="row" class="mono">${path}</th>${columns.map(({ detection, changed }) => {
            const isChanged = changed.includes(path);
            return html`<td class=${isChanged ? 'changed' : ''}>${isChanged && html`<span class="hidden">changed: </span>`}<${Foreign} text=${textAt(detection, path)} /></td>`;
          })}</tr>`,
      )}</tbody>
    </table></div>
    ${versions.length > columns.length && html`<button type="button" class="more" onClick=${() => setIsAll(true)}>Show all ${count(versions.length)} versions</button>`}
  </${Panel}>`;
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
