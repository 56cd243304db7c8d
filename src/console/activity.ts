/** Curves of the overview: what was read, delivered and asked for over 24 hours, 7 or 90 days. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Overview, Trends } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../time.ts';
import { bytes, clock, dayName, span, sum } from './format.ts';
import { soft } from './inline.ts';
import { choice, panel, read, table } from './parts.ts';
import { queryOf } from './route.ts';
import { useReading } from './server.ts';

const SPANS: Readonly<Record<string, string>> = { 1: '24 hours', 7: '7 days', 90: '90 days' };
const GROUPS = { exports: 'Exports', customers: 'Customers', keys: 'Keys', machine: 'Machine' };

/** Numbers in equal steps, the oldest first; null where there is none. */
type Values = readonly (number | null)[];

/** A curve, or two of the same unit. */
interface Series {
  readonly title: string;
  readonly lines: readonly (readonly [name: string, values: Values])[];
  readonly text: (value: number) => string;
  /** Its summary is the longest; otherwise the sum of the first line. */
  readonly isDelay?: boolean;
  /** Follows the sum. */
  readonly note?: string;
}

type About = Pick<Overview, 'database' | 'disks' | 'exports' | 'role'>;

export function Activity({ about }: { about: About }): VNode {
  const [days, setDays] = useState('1');
  const [group, setGroup] = useState<keyof typeof GROUPS>('exports');
  const aside = [choice('Curves of', group, GROUPS, setGroup), choice('Of the last', days, SPANS, setDays)];
  const within = SPANS[days] ?? '';
  const reading = useReading<Trends>(`/console/trends${queryOf({ days })}`, ['windows']);
  const of = { exports: ofExports, customers: ofCustomers, keys: ofKeys, machine: ofMachine };
  const curves = (trends: Trends) => {
    const isKnown = ({ lines }: Series) => lines.some(([, values]) => values.some((value) => value !== null));
    const all = of[group](trends, about).filter(isKnown);
    if (all.length === 0) return html`<p class="empty">Nothing in this time.</p>`;
    const curve = (series: Series) =>
      html`<${Curve} key=${series.title} steps=${trends} within=${within} ...${series} />`;
    return html`<div class="curves">${all.map(curve)}</div>`;
  };
  return panel('Activity', read(reading, curves), { look: 'half', help: 'monitoring', aside });
}

const ofExports = ({ exports }: Trends, about: About): Series[] =>
  EXPORT_NAMES.filter((name) => about.exports[name].enabled).flatMap((name) => [
    {
      title: `New detections, ${name}`,
      lines: [['Detections', exports[name].created]],
      text: (value) => counted(value, 'detection'),
    },
    delay(`From a window\u2019s end to its reading, ${name}`, exports[name].late_seconds),
  ]);

const ofCustomers = ({ customers }: Trends): Series[] =>
  customers.map(({ name, rows }) => ({
    title: `Rows for ${name}`,
    lines: [['Rows', rows]],
    text: (value) => counted(value, 'row'),
  }));

const ofKeys = ({ keys }: Trends): Series[] =>
  keys.flatMap((key) => [
    requestsOf(`Requests, ${key.name}`, key),
    delay(`Lag behind the stream, ${key.name}`, key.lag_seconds),
  ]);

function ofMachine({ machine, exports, step_seconds }: Trends, { role, database, disks }: About): Series[] {
  const lag = role === 'standby' ? 'Lag of this standby behind the copy' : 'Lag of the copy, and of standbys';
  const grown = grownBytes(database, exports);
  const days = (grown.length * step_seconds * SECOND_MS) / DAY_MS;
  const note = fullText(sum(grown) / days, disks);
  return [
    requestsOf('Requests', machine),
    delay(lag, machine.lag_seconds),
    { title: 'Growth of database and log', lines: [['Growth', grown]], text: bytes, note },
  ];
}

function requestsOf(title: string, { requests, refused }: Trends['machine']): Series {
  const left = sum(refused);
  const note = left === 0 ? ', none refused' : `, ${grouped(left)} refused (red)`;
  const lines = [['Requests', requests] as const, ['Refused', refused] as const];
  return { title, lines, text: grouped, note };
}

function delay(title: string, seconds: Values): Series {
  return { title, lines: [['Behind', seconds]], text: (value) => span(value * SECOND_MS), isDelay: true };
}

/** By the detections of each step, and the size of what is there. */
function grownBytes({ bytes: stored, log_bytes, versions }: About['database'], exports: Trends['exports']) {
  const each = versions === 0 ? 0 : (stored + log_bytes) / versions;
  const changes = Object.values(exports).flatMap(({ created, updated }) => [created, updated]);
  return (changes[0] ?? []).map((_, at) => each * sum(changes.map((values) => values[at] ?? 0)));
}

/** `: disk full in 40 weeks`; empty without growth. Database and log grow on the disk of the data folder. */
function fullText(bytesPerDay: number, disks: About['disks']): string {
  const disk = disks.find(({ of }) => of === 'data');
  if (bytesPerDay < 1 || disk === undefined) return '';
  const weeks = Math.floor(disk.free_bytes / bytesPerDay / 7);
  return `: disk full in ${weeks > 520 ? 'more than ten years' : counted(weeks, 'week')}`;
}

/** `within`: the time of all steps, in words. */
type CurveProps = Series & Readonly<{ steps: Trends; within: string }>;

const HEIGHT = 64;
const LABELS = 4;
const COLORS = ['accent', 'failed'];

/** A curve, with the same numbers as a table. */
function Curve({ title, lines, text, isDelay, note = '', steps, within }: CurveProps): VNode {
  const stepMs = steps.step_seconds * SECOND_MS;
  const time = (at: number) => timeText(Date.parse(steps.from) + at * stepMs, stepMs);
  const most = Math.max(...lines.flatMap(([, values]) => values.map((value) => value ?? 0)));
  const length = lines[0]?.[1].length ?? 0;
  const last = Math.max(1, length - 1);
  const pointsOf = (values: Values) =>
    values.map((value, x) => `${x} ${HEIGHT - ((value ?? 0) / (most || 1)) * (HEIGHT - 4)}`).join('L');
  const [[, main = []] = []] = lines;
  const summary = isDelay ? `at most ${text(most)}` : `${text(sum(main))} in ${within}${note}`;
  const line = ([, values]: Series['lines'][number], index: number) =>
    (index === 0 || values.some(Boolean)) &&
    html`<path fill="none" stroke=${`var(--${COLORS[index]})`} stroke-width="1.5" d=${`M${pointsOf(values)}`} vector-effect="non-scaling-stroke" />`;
  const shown = (value: number | null | undefined) => (value == null ? 'none' : text(value));
  const numbers = table(
    { label: title, rows: Array.from({ length }, (_, at) => at) },
    ['From (UTC)', time],
    ...lines.map(([name, values]) => [name, (at: number) => shown(values[at]), 'number'] as const),
  );
  const labels = Array.from(
    { length: LABELS },
    (_, part) => html`<span>${time(Math.round((last * part) / LABELS))}</span>`,
  );
  return html`<figure>
    <figcaption><h3>${title}</h3>${soft(summary)}</figcaption>
    <svg class="curve" viewBox=${`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none"
      role="img" aria-label=${`${title}: ${summary}`}>
      <path fill="var(--tint)" d=${`M0 ${HEIGHT}L${pointsOf(main)}L${last} ${HEIGHT}`} />
      ${lines.map(line).reverse()}
    </svg>
    <div class="row axis" aria-hidden="true">${labels}<span>now</span></div>
    <details><summary>As a table</summary>${numbers}</details>
  </figure>`;
}

/** Within a day the time, else also the day. */
function timeText(ms: number, stepMs: number): string {
  if (stepMs <= HOUR_MS) return clock(ms);
  return stepMs < DAY_MS ? `${dayName(ms)} ${clock(ms)}` : dayName(ms);
}
