/** Texts of times, ages, numbers and actions. Times are epoch milliseconds, shown in UTC. Pure. */
import { MINUTE_MS, utcDay, WINDOW_MS } from '../time.ts';

/** `12 s`, `4 min`, `3 h 20 min`, `2 d 4 h`. */
export function span(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.max(0, Math.round(ms / 1000))} s`;
  const minutes = Math.floor(ms / MINUTE_MS);
  const hours = Math.floor(minutes / 60);
  if (hours === 0) return `${minutes} min`;
  const [whole, rest] =
    hours < 24 ? [`${hours} h`, minutes % 60] : [`${Math.floor(hours / 24)} d`, hours % 24];
  return rest === 0 ? whole : `${whole} ${rest} ${hours < 24 ? 'min' : 'h'}`;
}

/** `2026-11-21 13:00:05` */
export const instant = (ms: number) => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

/** `13:00` */
export const clock = (ms: number) => instant(ms).slice(11, 16);

/** `Sat 21 Nov` */
export const dayName = (ms: number) => new Date(ms).toUTCString().slice(0, 11).replace(',', '');

/** `2026-11-21 13:00 to 13:10`, for a column that names the zone; elsewhere with ` UTC`. */
export const windowTime = (startMs: number, zone: '' | ' UTC' = ''): string =>
  `${utcDay(startMs)} ${clock(startMs)} to ${clock(startMs + WINDOW_MS)}${zone}`;

/** Without what is null. */
export const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((all, value) => all + (value ?? 0), 0);

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `4.2 GiB` */
export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${UNITS[power]}`;
}

const VALUE_MAX = 200;

/** A value of a file or of a log, as JSON. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? '(absent)';
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}
