/** A chart of numbers per minute over a day, with the same numbers as a table. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { chunks, clock, count, sum } from './format.ts';
import { soft, table } from './parts.ts';

const MINUTE_MS = 60_000;
/** Minutes per step of the curve: a day has 288 steps. */
const STEP = 5;
const HOUR = 60;
const HEIGHT = 64;

interface CurveProps {
  readonly title: string;
  /** In the plural. */
  readonly unit: string;
  readonly fromMs: number;
  /** A number per minute, oldest first. */
  readonly minutes: readonly number[];
}

export function Curve({ title, unit, fromMs, minutes }: CurveProps): VNode {
  const [at, setAt] = useState<number | null>(null);
  const steps = chunks(minutes, STEP).map((part) => sum(part) / part.length);
  const most = Math.max(...steps, 0);
  const last = Math.max(1, steps.length - 1);
  const time = (x: number) => clock(fromMs + x * STEP * MINUTE_MS);
  const points = steps.map((value, x) => `${x} ${HEIGHT - (value / (most || 1)) * (HEIGHT - 4)}`).join('L');
  const shown =
    at === null
      ? `${count(sum(minutes))} in 24 hours, at most ${perMinute(most)} a minute`
      : `${time(at)} to ${time(at + 1)} UTC: ${perMinute(steps[at] ?? 0)} ${unit} a minute`;
  const move = (event: PointerEvent) => {
    if (!(event.currentTarget instanceof Element)) return;
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setAt(Math.min(last, Math.max(0, Math.round(((event.clientX - left) / width) * last))));
  };
  const hours = chunks(minutes, HOUR).map((part, hour) => [time((hour * HOUR) / STEP), sum(part)] as const);
  const byHour = table<(typeof hours)[number]>(`${title}, by hour`, hours, [
    ['Hour from (UTC)', ([hour]) => hour],
    [title, ([, value]) => count(value), 'number'],
  ]);
  return html`<figure>
    <figcaption class="row"><h3>${title}</h3>${soft(shown)}</figcaption>
    <svg class="curve" viewBox=${`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${title}: ${shown}`} onPointerMove=${move} onPointerLeave=${() => setAt(null)}>
      <path fill="var(--tint)" d=${`M0 ${HEIGHT}L${points}L${last} ${HEIGHT}`} />
      <path fill="none" stroke="var(--accent)" stroke-width="1.5" d=${`M${points}`} vector-effect="non-scaling-stroke" />
      ${at !== null && html`<path stroke="var(--soft)" d=${`M${at} 0V${HEIGHT}`} vector-effect="non-scaling-stroke" />`}
    </svg>
    <div class="row axis" aria-hidden="true">${[0, 1, 2, 3].map((part) => html`<span>${time((last * part) / 4)}</span>`)}<span>now</span></div>
    <details><summary>As a table</summary>${byHour}</details>
  </figure>`;
}

function perMinute(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value));
}
