/** Detections as they arrive, or found in a period, with the filters of the API and the same call of the API. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Field } from '../admin/console/action-table.ts';
import type { DetectionsPage } from '../admin/console/api-records.ts';
import { DetectionView, detectionRows } from './detection.ts';
import { count, DAY_MS, day } from './format.ts';
import { choices, filters, valuesOf } from './forms.ts';
import { call, choice, failed, panel, read } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { serverNow, useReading } from './server.ts';

const COMMON: readonly Field[] = [
  { name: 'subscription_id', label: 'Subscription', hint: '7001' },
  { name: 'content_type', label: 'Type', options: choices('text and image', ['text', 'image']) },
  { name: 'domain', label: 'Domain', hint: 'example.com' },
  { name: 'publisher_id', label: 'Publisher id' },
  {
    name: 'min_band',
    label: 'Band at least',
    options: choices('any', ['off', 'low', 'medium', 'high', 'max']),
  },
  { name: 'min_score', label: 'Score at least', type: 'number' },
];
const PRINT = choices('any', [
  ['true', 'only'],
  ['false', 'none'],
]);
const MORE: readonly Field[] = [
  { name: 'article_id', label: 'Article id' },
  { name: 'source_id', label: 'Source id' },
  { name: 'exclude_domain', label: 'Not of domain' },
  { name: 'exclude_publisher_id', label: 'Not of publisher id' },
  { name: 'band', label: 'Bands', hint: 'high,max' },
  { name: 'print', label: 'Print titles', options: PRINT },
];
const MODES = [
  ['live', 'Live'],
  ['search', 'Search'],
] as const;
const DETECTION_ID = /^[ti]\.\d+\.\d+\.\d+$/;

export function Detections({ route }: { route: Route }): VNode {
  if (route.name !== '') return html`<${DetectionView} id=${route.name} />`;
  const mode = route.parameters.get('mode') === 'search' ? 'search' : 'live';
  const choose = (mode: string) =>
    go(linkTo('detections', { ...valuesOf([...COMMON, ...MORE], route), mode }));
  return html`<div class="row bar">${choice('Which', mode, MODES, choose)}<${ById} /></div>
    <${mode === 'search' ? Search : Live} route=${route} />`;
}

function ById(): VNode {
  const [isWrong, setIsWrong] = useState(false);
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const id = `${new FormData(event.currentTarget).get('id')}`.trim();
    setIsWrong(!DETECTION_ID.test(id));
    if (DETECTION_ID.test(id)) go(linkTo('detections', {}, id));
  };
  return html`<form class="row" onSubmit=${onSubmit}><input name="id" aria-label="Detection id" placeholder="t.7001.12.345" autocomplete="off" spellcheck=${false} aria-invalid=${isWrong} /><button>Open id</button>
    ${isWrong && failed('Expected an id such as t.7001.12.345.')}</form>`;
}

const SHOWN_MAX = 200;

/** Adds newer rows on top of those that were read before. */
export function onTop(newer: DetectionsPage, { detections, curl }: DetectionsPage): DetectionsPage {
  return { ...newer, detections: [...newer.detections, ...detections].slice(0, SHOWN_MAX), curl };
}

function Live({ route }: { route: Route }): VNode {
  const path = `/console/detections/live${queryOf(valuesOf([...COMMON, ...MORE], route))}`;
  const reading = useReading<DetectionsPage>(path, ['detections'], onTop);
  const [held, setHeld] = useState<DetectionsPage | null>(null);
  useEffect(() => setHeld(null), [path]);
  const hold = html`<button type="button" aria-pressed=${held !== null} onClick=${() => setHeld(held === null ? (reading.pages[0] ?? null) : null)}>${held === null ? 'Hold' : 'Resume'}</button>`;
  const rows = (page: DetectionsPage) => {
    const [first] = held?.detections ?? [];
    const waiting = first === undefined ? page.detections.length : page.detections.indexOf(first);
    const note =
      held === null
        ? 'Newest first. New versions appear on top as they are delivered.'
        : `Held. ${waiting < 0 ? `More than ${SHOWN_MAX} newer versions` : count(waiting, 'newer version')} waiting.`;
    const { detections } = held ?? page;
    return html`<p class="soft live-note">${note}</p>
      ${detectionRows(detections, 'Newest versions', 'None yet. Detections appear here as export files are read.')}
      ${call(page.curl)}`;
  };
  const parts = [filters({ fields: COMMON, more: MORE, route }), read(reading, rows)];
  return panel('Live stream', parts, { help: 'change-stream', aside: hold });
}

function Search({ route }: { route: Route }): VNode {
  const to = day(serverNow() + DAY_MS);
  const fields: readonly Field[] = [
    { name: 'from', label: 'First detected from', type: 'date', value: day(serverNow() - 7 * DAY_MS) },
    { name: 'to', label: 'before', type: 'date', value: to },
    ...COMMON,
  ];
  const path = `/console/detections/search${queryOf(valuesOf([...fields, ...MORE], route))}`;
  const rows = (first: DetectionsPage, pages: readonly DetectionsPage[]) => {
    const all = pages.flatMap(({ detections }) => detections);
    const { next, searched_to, curl } = pages.at(-1) ?? first;
    const reached =
      next === null
        ? 'The period was searched to its end.'
        : `Searched back to ${(searched_to ?? to).slice(0, 10)}.`;
    return html`<p class="soft live-note" role="status">${count(all.length, 'detection')}. ${reached}</p>
      ${detectionRows(all, 'Detections found', 'None so far.')}
      ${call(curl)}`;
  };
  const kept = { mode: 'search' };
  const reading = useReading<DetectionsPage>(path);
  const parts = [filters({ fields, more: MORE, route, kept }), read(reading, rows, 'Continue the search')];
  return panel('Search', parts, { help: 'periods' });
}
