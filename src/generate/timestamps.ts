/** Times of sample rows as text: the contract's timestamp, made from its minute, which thousands of rows share. */
import { BoundedMap } from '../bounded-map.ts';
import { formatSeconds } from '../time.ts';

const MINUTES_MAX = 10_000;
const SECONDS = Array.from({ length: 60 }, (_, second) => `${String(second).padStart(2, '0')}Z`);
const minutes = new BoundedMap<number, string>(MINUTES_MAX);

/** The same as formatSeconds, four times as fast: half the time that a row takes would go into its five times. */
export function timestamp(seconds: number): string {
  const minute = Math.floor(seconds / 60);
  let text = minutes.get(minute);
  if (text === undefined) {
    text = formatSeconds(minute * 60).slice(0, 17);
    minutes.set(minute, text);
  }
  return text + SECONDS[seconds - minute * 60];
}
