/** A curve of numbers a minute over a day, with what it shows as a table behind it. Drawn by hand. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { clock, count } from './format.ts';

const MINUTE_MS = 60_000;
/** Minutes that one step of the curve stands for: a day has 288 of them. */
const STEP = 5;
const HEIGHT = 64;
const HOUR_STEPS = 60 / STEP;

interface CurveProps {
  readonly title: string;
  /** Of what, in the plural. */
  readonly unit: string;
  readonly fromMs: number;
  /** A number a minute, oldest first. */
  readonly minutes: readonly number[];
}

export function Curve({ title, unit, fromMs, minutes }: CurveProps): VNode {
  const [at, setAt] = useState<number | null>(null);
  const steps = stepsOf(minutes);
  const most = Math.max(...steps, 0);
  const total = minutes.reduce((sum, value) => sum + value, 0);
  const y = (value: number) => (HEIGHT - (most === 0 ? 0 : (value / most) * (HEIGHT - 4))).toFixed(1);
  const line = steps.map((value, x) => `${x === 0 ? 'M' : 'L'}${x} ${y(value)}`).join('');
  const last = Math.max(1, steps.length - 1);
  const startOf = (x: number) => fromMs + x * STEP * MINUTE_MS;
  const shown =
    at === null
      ? `${count(total)} in 24 hours, at most ${perMinute(most)} a minute`
      : `${clock(startOf(at))} to ${clock(startOf(at + 1))} UTC: ${perMinute(steps[at] ?? 0)} ${unit} a minute`;
  const move = (event: PointerEvent) => {
    if (!(event.currentTarget instanceof Element)) return;
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setAt(Math.min(last, Math.max(0, Math.round(((event.clientX - left) / width) * last))));
  };
  return html`<figure class="curve">
    <figcaption><h3>${title}</h3><span class="soft">${shown}</span></figcaption>
    <svg viewBox=${`0 0 ${last} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${title}: ${shown}`} onPointerMove=${move} onPointerLeave=${() => setAt(null)}>
      <path class="area" d=${`${line}L${last} ${HEIGHT}L0 ${HEIGHT}Z`} />
      <path class="line" d=${line} vector-effect="non-scaling-stroke" />
      ${at !== null && html`<path class="cursor" d=${`M${at} 0V${HEIGHT}`} vector-effect="non-scaling-stroke" />`}
    </svg>
    <div class="axis" aria-hidden="true"><span>${clock(fromMs)}</span><span>${clock(startOf(last / 4))}</span><span>${clock(startOf(last / 2))}</span><span>${clock(startOf((last * 3) / 4))}</span><span>now</span></div>
    <details><summary>As a table</summary><table aria-label=${`${title}, by hour`}><thead><tr><th scope="col">Hour from (UTC)</th><th scope="col" class="number">${title}</th></tr></thead><tbody>${hoursOf(
      minutes,
    ).map(
      (sum, hour) =>
        html`<tr><td data-title="Hour from (UTC)">${clock(startOf(hour * HOUR_STEPS))}</td><td class="number" data-title=${title}>${count(sum)}</td></tr>`,
    )}</tbody></table></details>
  </figure>`;
}

/** The mean of each step, a minute. */
function stepsOf(minutes: readonly number[]): number[] {
  return sums(minutes, STEP).map((sum, index) => sum / Math.min(STEP, minutes.length - index * STEP));
}

function hoursOf(minutes: readonly number[]): number[] {
  return sums(minutes, 60);
}

function sums(values: readonly number[], size: number): number[] {
  const of: number[] = [];
  for (let at = 0; at < values.length; at += size)
    of.push(values.slice(at, at + size).reduce((sum, value) => sum + value, 0));
  return of;
}

function perMinute(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value));
}
