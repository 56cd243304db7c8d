/** Detections as lines: what was found where, how strong, since when. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { DetectionEntry } from '../admin/console/api-records.ts';
import { type Children, Foreign, Table, When } from './parts.ts';
import { linkTo } from './route.ts';

interface RowsProps {
  readonly rows: readonly DetectionEntry[];
  readonly label: string;
  readonly empty: Children;
}

export function DetectionRows({ rows, label, empty }: RowsProps): VNode {
  const columns = [
    { title: 'Detection', class: 'wide', of: (one: DetectionEntry) => html`<${Title} of=${one} />` },
    {
      title: 'Found on',
      class: 'medium',
      of: ({ article }: DetectionEntry) => html`<${Foreign} text=${placeOf(article)} />`,
    },
    { title: 'Subscription', isNumber: true, of: (one: DetectionEntry) => `${one.subscription_id}` },
    { title: 'Type', of: (one: DetectionEntry) => one.content_type },
    { title: 'Strength', of: (one: DetectionEntry) => html`<${Strength} of=${one.strength} />` },
    {
      title: 'First detected (UTC)',
      of: (one: DetectionEntry) => html`<${When} at=${one.first_detected_at} />`,
    },
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${rows} keyOf=${(one: DetectionEntry) => `${one.id} ${one.version}`} empty=${empty} />`;
}

const HEADLINE_MAX = 200;

/** The headline; where the export gave none, the id. */
export function titleOf({ id, article }: DetectionEntry): string {
  const { headline } = article;
  if (headline === null || headline.trim() === '') return id;
  return headline.length > HEADLINE_MAX ? `${headline.slice(0, HEADLINE_MAX)}…` : headline;
}

function Title({ of }: { of: DetectionEntry }): VNode {
  const title = titleOf(of);
  return html`<a class="title" href=${linkTo('detections', {}, of.id)}><${Foreign} text=${title} /></a>
    <span class="soft mono">${title !== of.id && of.id} version ${of.version}</span>`;
}

export function placeOf({ publisher, domain }: DetectionEntry['article']): string {
  return publisher?.name ?? domain ?? 'unknown';
}

const FULL = 100;

/** The band in words, and the score as a bar: a text's goes to 100, a photo's to 99. */
export function Strength({ of }: { of: DetectionEntry['strength'] }): VNode {
  return html`<span class="strength"><meter min="0" max=${FULL} value=${of.score} aria-hidden="true"></meter>${of.band} ${Math.round(of.score)}</span>`;
}
