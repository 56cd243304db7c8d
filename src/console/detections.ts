/** Detections as they arrive or found in a period, with the filters of the API; one detection with its versions. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { DetectionDetail, DetectionEntry, DetectionsPage } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { isObject } from '../is-object.ts';
import { DAY_MS, utcDay } from '../time.ts';
import { shown } from './format.ts';
import { choices, type Field, useList, valuesOf } from './forms.ts';
import { bar, foreign, outside, when } from './inline.ts';
import { type Column, choice, type Facts, facts, Heading, panel, read, table } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { serverNow, useReading } from './server.ts';

const BANDS = choices('any', ['off', 'low', 'medium', 'high', 'max']);
const FIELDS: readonly Field[] = [
  { name: 'subscription_id', label: 'Subscription', hint: '7001' },
  { name: 'content_type', label: 'Type', options: choices(CONTENT_TYPES.join(' and '), CONTENT_TYPES) },
  { name: 'domain', label: 'Domain', hint: 'example.com' },
  { name: 'publisher_id', label: 'Publisher id' },
  { name: 'min_band', label: 'Band at least', options: BANDS },
  { name: 'min_score', label: 'Score at least', type: 'number' },
];
const MODES = { live: 'Live', search: 'Search' };

export function Detections({ route }: { route: Route }): VNode {
  if (route.name !== '') return html`<${One} id=${route.name} />`;
  const mode = route.parameters.get('mode') === 'search' ? 'search' : 'live';
  const choose = (chosen: string) =>
    go(linkTo('detections', { ...valuesOf({ route, fields: FIELDS }), mode: chosen }));
  return html`<div class="row bar">${choice('Which', mode, MODES, choose)}</div>
    <${mode === 'search' ? Search : Live} route=${route} />`;
}

const placeOf = ({ article: { publisher, domain } }: DetectionEntry): VNode =>
  foreign(publisher?.name ?? domain ?? 'unknown');

/** The score as a bar, with the band: a text's score goes to 100, a photo's to 99. */
const strength = ({ strength: { band, score } }: DetectionEntry): VNode =>
  bar(score, 100, `${band} ${Math.round(score)}`);

const ROWS = {
  rowsOf: ({ detections }: DetectionsPage) => detections,
  key: ({ id, version }: DetectionEntry) => `${id} ${version}`,
  columns: [
    ['Detection', titleLink, 'wide'],
    ['Found on', placeOf, 'medium'],
    ['Subscription', (row) => `${row.subscription_id}`, 'number'],
    ['Type', (row) => row.content_type],
    ['Strength', strength],
    ['First detected (UTC)', (row) => when(row.first_detected_at)],
  ] satisfies Column<DetectionEntry>[],
};

export const detectionRows = (rows: readonly DetectionEntry[], label: string, empty: string): VNode =>
  table({ ...ROWS, label, rows, empty }, ...ROWS.columns);

function Live({ route }: { route: Route }): VNode {
  return useList<DetectionsPage, DetectionEntry>({
    ...ROWS,
    label: 'Live stream',
    help: 'change-stream',
    path: '/console/detections/live',
    topics: ['detections'],
    route,
    fields: FIELDS,
    noteOf({ detections, total }) {
      const versions = shownOf(detections.length, total, 'version');
      return html`<p class="soft live-note">In the order of delivery, the newest first: ${versions}. New versions appear on top.</p>`;
    },
    empty: 'None yet. Detections appear here as export files are read.',
  });
}

function Search({ route }: { route: Route }): VNode {
  const to = utcDay(serverNow() + DAY_MS);
  const period: readonly Field[] = [
    { name: 'words', label: 'Headline, publisher, domain or id', hint: 'part of it' },
    { name: 'from', label: 'First detected from', type: 'date', value: utcDay(serverNow() - 7 * DAY_MS) },
    { name: 'to', label: 'First detected before', type: 'date', value: to },
  ];
  return useList<DetectionsPage, DetectionEntry>({
    ...ROWS,
    label: 'Search',
    help: 'periods',
    path: '/console/detections/search',
    route,
    fields: [...period, ...FIELDS],
    kept: { mode: 'search' },
    submit: 'Search',
    more: 'Continue the search',
    // One step of a search is short, and finds few or none: with so many rows it waits for somebody who wants more.
    enough: 20,
    noteOf({ total }, { next, searched_to }, { length }) {
      const back = (searched_to ?? to).slice(0, 10);
      const soFar = `Searched back to ${back}; earlier days were not searched yet.`;
      const reached = next === null ? 'The period was searched to its end.' : soFar;
      return html`<p class="soft live-note" role="status">${shownOf(length, total, 'detection')}. ${reached}</p>`;
    },
    empty: 'None so far.',
  });
}

/** `50 of 12,345 detections` */
function shownOf(rows: number, total: DetectionsPage['total'], what: string): string {
  if (total === null) return counted(rows, what);
  const all = total.or_more ? `at least ${counted(total.rows, what)}` : counted(total.rows, what);
  return `${grouped(rows)} of ${all}`;
}

const HEADLINE_MAX = 200;

/** The headline, or the id if there is none. */
export function titleOf({ id, article: { headline } }: DetectionEntry): string {
  const title = (headline ?? '').trim() || id;
  return title.length > HEADLINE_MAX ? `${title.slice(0, HEADLINE_MAX)}…` : title;
}

function titleLink(detection: DetectionEntry): VNode {
  const title = titleOf(detection);
  const id = title === detection.id ? '' : `${detection.id} `;
  const text = html`<a class="title" href=${linkTo('detections', {}, detection.id)}>${foreign(title)}</a>
    <span class="soft mono">${id}version\u00a0${detection.version}</span>`;
  if (!hasPhoto(detection)) return text;
  return html`<div class="with-photo"><${Photo} key=${detection.id} of=${detection} look="small" /><div>${text}</div></div>`;
}

function One({ id }: { id: string }): VNode {
  const reading = useReading<DetectionDetail>(`/console/detections/one${queryOf({ id })}`, ['detections']);
  const versions = (_: DetectionDetail, pages: readonly DetectionDetail[]) =>
    html`<${Versions} of=${pages.flatMap((page) => page.versions)} />`;
  const [data] = reading.pages;
  return html`<p class="back"><a href=${linkTo('detections')}>Detections</a></p>
    <${Heading} about=${id}>${data === undefined ? id : foreign(titleOf(data.current))}</${Heading}>
    ${data !== undefined && panel('What was found', [pictures(data.current), facts(found(data))])}
    ${panel('Versions, the newest first', read(reading, versions, 'Search for older versions'))}`;
}

/** The agency's picture beside where it was found. */
function pictures(detection: DetectionEntry): VNode | null {
  if (!hasPhoto(detection)) return null;
  const { image_url: url } = detection.article;
  const own = html`<${Photo} key=${detection.id} of=${detection} look="large" />`;
  return html`<div class="pictures">
    <figure>${own}<figcaption class="soft">The agency’s picture</figcaption></figure>
    ${
      typeof url === 'string' &&
      html`<figure><div class="photo away large">
          <p>${outside(url)}</p>
          <p>A link, not the picture: to show it, your browser would load it from the publisher, who would learn that you look.</p>
        </div><figcaption class="soft">The picture in the article</figcaption></figure>`
    }
  </div>`;
}

function found({ current }: DetectionDetail): Facts {
  const { article, source, subscription_id, first_detected_estimated: isEstimated } = current;
  return [
    ['Item', foreign(source.id ?? `number ${source.internal_id}`, 'mono')],
    ['Found on', placeOf(current)],
    ['Article', outside(article.url, `number ${article.id}`)],
    ['Strength', strength(current)],
    ['First detected', [when(current.first_detected_at), ' UTC', isEstimated && ', estimated']],
    ['Last scored', [when(current.last_scored_at), ' UTC']],
    ['Subscription', `${subscription_id}`],
    ['Id', foreign(current.id, 'mono')],
    ...(typeof source.image_url === 'string' ? [['Photo', outside(source.image_url)] as const] : []),
  ];
}

type Version = DetectionDetail['versions'][number];

function Versions({ of: versions }: { of: readonly Version[] }): VNode {
  const [isChanges, setIsChanges] = useState(false);
  const changes = new Set(versions.flatMap(({ changed }) => changed));
  const paths = isChanges ? changes : new Set(versions.flatMap(({ detection }) => pathsOf(detection)));
  for (const name of ['event', 'version']) paths.delete(name);
  const head = ({ version, at, changed }: Version) =>
    html`<th scope="col">Version ${grouped(version)}<br />
      ${at === null ? 'just delivered' : html`delivered ${when(at)}`}<br />
      ${changed.length === 0 ? 'first one found' : counted(changed.length, 'change')}</th>`;
  const row = (path: string) => {
    const cells = versions.map(({ detection, changed, version }) => {
      const isChanged = changed.includes(path);
      const told = isChanged && html`<span class="hidden">changed: </span>`;
      return html`<td class=${isChanged && 'changed'} data-title=${`Version ${grouped(version)}`}>${told}${foreign(textAt(detection, path))}</td>`;
    });
    return html`<tr key=${path}><th scope="row" class="mono">${path}</th>${cells}</tr>`;
  };
  const onlyChanges = html`<label class="check"><input type="checkbox" checked=${isChanges} onChange=${() => setIsChanges(!isChanges)} />Changes only</label>`;
  return html`${changes.size > 0 && onlyChanges}
    <div class="scroll" tabindex="0" role="region" aria-label="Versions side by side"><table class="versions">
      <thead><tr><th scope="col">Field</th>${versions.map(head)}</tr></thead>
      <tbody>${[...paths].map(row)}</tbody>
    </table></div>`;
}

/** The dotted path of every value, as the API names fields. */
function pathsOf(value: unknown, path = ''): string[] {
  if (!isObject(value)) return [path];
  return Object.entries(value).flatMap(([name, member]) => pathsOf(member, path ? `${path}.${name}` : name));
}

function textAt(detection: DetectionEntry, path: string): string {
  const value = path.split('.').reduce<unknown>((within, name) => Object(within)[name], detection);
  if (value === undefined) return '';
  return typeof value === 'string' ? value : shown(value);
}

/** The part of a signed address that the console's own server answers, too. */
const SIGNED = /\/photos\/\d+\?signature=[\w-]+$/;

/** Whether a detection is of a picture, of whatever type. */
const hasPhoto = ({ source }: DetectionEntry) => 'image_url' in source;

/**
 * The agency's own picture, from its photo folder. Nothing is loaded from other servers: those would learn who looks.
 * @param look small in a list, large where it is the subject
 */
function Photo({ of: detection, look }: { of: DetectionEntry; look: 'small' | 'large' }): VNode {
  const [isGone, setIsGone] = useState(false);
  const { image_url, id } = detection.source;
  const [path] = SIGNED.exec(typeof image_url === 'string' ? image_url : '') ?? [];
  if (path === undefined || isGone)
    return html`<span class=${`photo none ${look}`} role="img" aria-label="No picture in the photo folder">${look === 'large' && 'No picture in the photo folder'}</span>`;
  return html`<img class=${`photo ${look}`} src=${path} alt=${look === 'large' ? `Photo ${id ?? ''}` : ''}
    loading="lazy" onError=${() => setIsGone(true)} />`;
}
