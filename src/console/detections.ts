/** Detections: as they arrive, or found within a period; with the filters of the API, and the call that gives the same. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DetectionEntry, DetectionsPage } from '../admin/console/api-records.ts';
import { DetectionView } from './detection.ts';
import { DetectionRows } from './detection-rows.ts';
import { count, DAY_MS, day } from './format.ts';
import { type Field, Filters, Pages, usePages, valuesOf } from './list.ts';
import { Choice, Code, Heading, Panel, Read } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { ask, Failure, serverNow, useEvents, useReading } from './server.ts';

const BANDS = ['off', 'low', 'medium', 'high', 'max'];

const COMMON: readonly Field[] = [
  { name: 'subscription_id', label: 'Subscription', hint: '7001' },
  {
    name: 'content_type',
    label: 'Type',
    options: [
      ['', 'text and image'],
      ['text', 'text'],
      ['image', 'image'],
    ],
  },
  { name: 'domain', label: 'Domain', hint: 'example.com' },
  { name: 'publisher_id', label: 'Publisher id' },
  {
    name: 'min_band',
    label: 'Band at least',
    options: [['', 'any'], ...BANDS.map((one) => [one, one] as const)],
  },
  { name: 'min_score', label: 'Score at least', type: 'number' },
];
const PERIOD: readonly Field[] = [
  { name: 'from', label: 'First detected from', type: 'date' },
  { name: 'to', label: 'before', type: 'date' },
];
const MORE: readonly Field[] = [
  { name: 'article_id', label: 'Article id' },
  { name: 'source_id', label: 'Source id' },
  { name: 'exclude_domain', label: 'Not of domain' },
  { name: 'exclude_publisher_id', label: 'Not of publisher id' },
  { name: 'band', label: 'Bands', hint: 'high,max' },
  {
    name: 'print',
    label: 'Print titles',
    options: [
      ['', 'any'],
      ['true', 'only'],
      ['false', 'none'],
    ],
  },
];
const DETECTION_ID = /^[ti]\.\d+\.\d+\.\d+$/;

export function Detections({ route }: { route: Route }): VNode {
  if (route.name !== '') return html`<${DetectionView} id=${route.name} />`;
  const isSearch = route.parameters.get('mode') === 'search';
  const choose = (mode: string) =>
    go(
      linkTo('detections', {
        ...valuesOf([...COMMON, ...MORE], route),
        mode: mode === 'search' ? mode : null,
      }),
    );
  return html`<${Heading}>Detections</${Heading}>
    <div class="bar">
      <${Choice} label="Which" value=${isSearch ? 'search' : 'live'} options=${[['live', 'Live'], ['search', 'Search']]} onChoose=${choose} />
      <${ById} />
    </div>
    ${isSearch ? html`<${Search} route=${route} />` : html`<${Live} route=${route} />`}`;
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
  return html`<form class="by-id" onSubmit=${onSubmit}><label><span class="hidden">Detection id</span><input name="id" placeholder="t.7001.12.345" autocomplete="off" spellcheck=${false} aria-invalid=${isWrong} /></label><button>Open id</button>
    ${isWrong && html`<span class="failure" role="alert">Expected an id such as t.7001.12.345.</span>`}</form>`;
}

const SHOWN_MAX = 200;

function Live({ route }: { route: Route }): VNode {
  const path = `/console/detections/live${queryOf(valuesOf([...COMMON, ...MORE], route))}`;
  const reading = useReading<DetectionsPage>(path);
  const live = useNewer(path, reading.data);
  return html`<${Panel} title="Live stream" help="change-stream" aside=${html`<button type="button" aria-pressed=${live.isHeld} onClick=${live.toggle}>${live.isHeld ? 'Go on' : 'Hold'}</button>`}>
    <${Filters} fields=${COMMON} more=${MORE} route=${route} />
    <${Read} of=${reading}>${(page: DetectionsPage) => html`
      <p class="soft live-note">${live.isHeld ? `Held. ${count(live.waiting, 'newer version')} waiting.` : 'Newest first. New versions appear on top as they are delivered.'}</p>
      ${live.failure !== undefined && html`<p class="failure" role="alert">${live.failure}</p>`}
      <${DetectionRows} rows=${live.rows} label="Newest versions" empty="None yet. Detections appear here as export files are read." />
      <${Call} curl=${page.curl} />`}</${Read}>
  </${Panel}>`;
}

interface Newer {
  readonly rows: readonly DetectionEntry[];
  readonly isHeld: boolean;
  readonly waiting: number;
  readonly failure: string | undefined;
  toggle(): void;
}

/** What has come since the first page, put on top of it; while it is held, it is counted only. */
function useNewer(path: string, first: DetectionsPage | undefined): Newer {
  const [rows, setRows] = useState<readonly DetectionEntry[]>([]);
  const [waiting, setWaiting] = useState<readonly DetectionEntry[]>([]);
  const [isHeld, setIsHeld] = useState(false);
  const [failure, setFailure] = useState<string>();
  const cursor = useRef<string | null>(null);
  const isAsking = useRef(false);
  useEffect(() => {
    cursor.current = first?.next ?? null;
    setRows(first?.detections ?? []);
    setWaiting([]);
  }, [first]);
  useEvents(async (topic) => {
    const after = cursor.current;
    if ((topic !== 'detections' && topic !== 'all') || after === null || isAsking.current) return;
    isAsking.current = true;
    try {
      const page = await ask<DetectionsPage>(
        `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}`,
      );
      if (cursor.current !== after) return;
      cursor.current = page.next;
      const put = isHeld ? setWaiting : setRows;
      put((before) => [...page.detections, ...before].slice(0, SHOWN_MAX));
      setFailure(undefined);
    } catch (error) {
      setFailure(error instanceof Failure ? error.message : 'It could not be read.');
    } finally {
      isAsking.current = false;
    }
  });
  const toggle = () => {
    if (isHeld) setRows((before) => [...waiting, ...before].slice(0, SHOWN_MAX));
    setWaiting([]);
    setIsHeld(!isHeld);
  };
  return { rows, isHeld, waiting: waiting.length, failure, toggle };
}

function Search({ route }: { route: Route }): VNode {
  const { parameters } = route;
  const fields = [...PERIOD, ...COMMON];
  const period = {
    from: parameters.get('from') ?? day(serverNow() - 7 * DAY_MS),
    to: parameters.get('to') ?? day(serverNow() + DAY_MS),
  };
  const filled = {
    ...route,
    parameters: new URLSearchParams({ ...Object.fromEntries(parameters), ...period }),
  };
  const pages = usePages<DetectionsPage>(
    `/console/detections/search${queryOf(valuesOf([...fields, ...MORE], filled))}`,
  );
  return html`<${Panel} title="Search" help="periods">
    <${Filters} fields=${fields} more=${MORE} route=${filled} kept=${{ mode: 'search' }} />
    <${Pages} of=${pages} more="Continue the search">${(all: readonly DetectionsPage[]) => {
      const rows = all.flatMap(({ detections }) => detections);
      const last = all.at(-1);
      const reached =
        last?.next === null
          ? 'The period was searched to its end.'
          : `Searched back to ${last?.searched_to?.slice(0, 10) ?? period.to}.`;
      return html`<p class="soft live-note" role="status">${count(rows.length, 'detection')}. ${reached}</p>
        <${DetectionRows} rows=${rows} label="Detections found" empty="None so far." />
        ${last !== undefined && html`<${Call} curl=${last.curl} />`}`;
    }}</${Pages}>
  </${Panel}>`;
}

export function Call({ curl }: { curl: string }): VNode {
  return html`<details class="call"><summary>The same by the API</summary><${Code} text=${curl} label="the call" /></details>`;
}
