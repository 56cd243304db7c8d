/** Curves of the overview: what was read, served and refused over 24 hours, 7 or 90 days. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Overview, Trends } from '../admin/console/api.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../time.ts';
import { chunks, clock, count, dayName, span, sum } from './format.ts';
import { soft } from './inline.ts';
import { choice, panel, read, table } from './parts.ts';
import { queryOf } from './route.ts';
import { useReading } from './server.ts';

const SPANS = [
  ['1', '24 hours'],
  ['7', '7 days'],
  ['90', '90 days'],
] as const;

/** Numbers over time, in equal steps, the oldest first. */
interface Series {
  readonly title: string;
  readonly fromMs: number;
  readonly stepMs: number;
  readonly values: readonly number[];
  readonly summary: string;
  readonly text: (value: number) => string;
}

export function Activity({ minutes }: { minutes: Overview['minutes'] }): VNode {
  const [days, setDays] = useState<(typeof SPANS)[number][0]>('1');
  const reading = useReading<Trends>(`/console/trends${queryOf({ days })}`, ['windows']);
  const curves = (trends: Trends) => {
    const all = [
      ...ofFiles(trends, days),
      ...ofCustomers(trends, days),
      ...(days === '1' ? ofMinutes(minutes) : []),
    ];
    return html`<div class="curves">${all.map((curve) => html`<${Curve} key=${curve.title} ...${curve} />`)}</div>`;
  };
  const aside = choice('Of the last', days, SPANS, setDays);
  return panel('Activity', read(reading, curves), { look: 'half', help: 'monitoring', aside });
}

function ofFiles({ from, step_seconds, exports, enabled }: Trends, days: string): Series[] {
  const at = { fromMs: Date.parse(from), stepMs: step_seconds * SECOND_MS };
  return enabled.flatMap((name): Series[] => {
    const { created, late_seconds } = exports[name];
    const late = late_seconds.filter((seconds) => seconds > 0);
    const time = (seconds: number) => (seconds === 0 ? 'none was read' : span(seconds * SECOND_MS));
    return [
      {
        ...at,
        title: `New detections, ${name}`,
        values: created,
        summary: `${count(sum(created))} in ${SPANS.find(([known]) => known === days)?.[1]}`,
        text: (value) => count(value, 'detection'),
      },
      {
        ...at,
        title: `From a window\u2019s end to its reading, ${name}`,
        values: late_seconds,
        summary: late.length === 0 ? 'nothing was read' : `${time(sum(late) / late.length)} on average`,
        text: time,
      },
    ];
  });
}

function ofCustomers({ from, step_seconds, customers }: Trends, days: string): Series[] {
  return customers.map(({ name, rows }) => ({
    fromMs: Date.parse(from),
    stepMs: step_seconds * SECOND_MS,
    title: `Rows for ${name}`,
    values: rows,
    summary: `${count(sum(rows))} new or changed in ${SPANS.find(([span]) => span === days)?.[1]}`,
    text: (value) => count(value, 'row'),
  }));
}

/** Counts by the minute, kept for a day: their name, the title, and their unit in the plural. */
const COUNTS = [
  ['rows_ingested', 'Rows read from exports', 'rows'],
  ['rows_served', 'Rows served to clients', 'rows'],
  ['requests', 'Requests', 'requests'],
  ['refused', 'Refused requests', 'refused requests'],
] as const;
const STEP = 5;

function ofMinutes(minutes: Overview['minutes']): Series[] {
  return COUNTS.map(([name, title, unit]) => {
    const values = chunks(minutes[name], STEP).map((part) => sum(part) / part.length);
    return {
      title,
      fromMs: Date.parse(minutes.from),
      stepMs: STEP * MINUTE_MS,
      values,
      summary: `${count(sum(minutes[name]))} in 24 hours, at most ${rounded(Math.max(...values, 0))} a minute`,
      text: (value) => `${rounded(value)} ${unit} a minute`,
    };
  });
}

function rounded(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value));
}

const HEIGHT = 64;
const LABELS = 4;

/** A curve, with the same numbers as a table. */
function Curve({ title, fromMs, stepMs, values, summary, text }: Series): VNode {
  const most = Math.max(...values, 0);
  const last = Math.max(1, values.length - 1);
  const time = (x: number) => timeText(fromMs + x * stepMs, stepMs);
  const points = values.map((value, x) => `${x} ${HEIGHT - (value / (most || 1)) * (HEIGHT - 4)}`).join('L');
  // A row for each hour at least.
  const size = Math.max(1, Math.round(HOUR_MS / stepMs));
  const rows = chunks(values, size).map((part, row) => [time(row * size), sum(part) / part.length] as const);
  const numbers = table(
    { label: title, rows },
    ['From (UTC)', ([from]) => from],
    [title, ([, value]) => text(value), 'number'],
  );
  const labels = Array.from(
    { length: LABELS },
    (_, part) => html`<span>${time(Math.round((last * part) / LABELS))}</span>`,
  );
  return html`<figure>
    <figcaption class="row"><h3>${title}</h3>${soft(summary)}</figcaption>
    <svg class="curve" viewBox=${`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none"
      role="img" aria-label=${`${title}: ${summary}`}>
      <path fill="var(--tint)" d=${`M0 ${HEIGHT}L${points}L${last} ${HEIGHT}`} />
      <path fill="none" stroke="var(--accent)" stroke-width="1.5" d=${`M${points}`} vector-effect="non-scaling-stroke" />
    </svg>
    <div class="row axis" aria-hidden="true">${labels}<span>now</span></div>
    <details><summary>As a table</summary>${numbers}</details>
  </figure>`;
}

/** Within a day the time, else also the day. */
function timeText(ms: number, stepMs: number): string {
  if (stepMs <= HOUR_MS) return clock(ms);
  return stepMs < 24 * HOUR_MS ? `${dayName(ms)} ${clock(ms)}` : dayName(ms);
}
