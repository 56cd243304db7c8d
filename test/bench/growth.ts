/**
 * The cost of a long history (`--growth`): reads files of two million rows in twenty streams, and measures after three
 * and after five of them. With `--against COMMIT`, also measures an earlier version after three.
 *
 * "Cold" means that the database's file was dropped from the page cache
 * (https://man7.org/linux/man-pages/man1/dd.1.html, nocache), which fincore confirms, and that the appliance was
 * restarted.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Bench, cost, type Figure, median, rangeOf } from './common.ts';
import { dropped, generated, prepareAccess } from './ingest.ts';
import { authorization } from './load.ts';
import { startAppliance } from './program.ts';

const STREAMS = Array.from({ length: 20 }, (_, index) => 7001 + index);
const [OWN] = STREAMS;
const SAMPLES = 20;
const FEW = 3;
const MANY = 5;
/** A comparison of database and log would begin in the middle, and read both beside an ingest. */
const SETTINGS = { WIREWATCH_VERIFY_EVERY_HOURS: '0' };

/** `rows`: in a file. */
type Options = Pick<Bench, 'folder' | 'rows'> & { readonly note: (text: string) => void };

/** @param before the bundle of an earlier version; null: none */
export async function growth(now: string, before: string | null, options: Options): Promise<Figure[]> {
  const earlier = before === null ? null : await grown(before, 'before', [FEW], options);
  const later = await grown(now, 'now', [FEW, MANY], options);
  return [...later].flatMap(([files, figures]) =>
    figures.map((figure, at) => ({
      ...figure,
      what: `${((files * options.rows) / 1e6).toLocaleString('en-US')} million rows: ${figure.what}`,
      before: earlier?.get(files)?.[at]?.now ?? null,
    })),
  );
}

/** @returns results by the number of files read */
async function grown(
  bundle: string,
  name: string,
  stops: readonly number[],
  { folder, rows, note }: Options,
): Promise<Map<number, Figure[]>> {
  const data = join(folder, `growth-${name}`);
  const key = prepareAccess(data, STREAMS, { bundle });
  const measured = new Map<number, Figure[]>();
  let appliance = await startAppliance(data, { bundle, settings: SETTINGS });
  let slowest = 0;
  let walBytes = 0;
  for (let file = 1; file <= Math.max(...stops); file += 1) {
    const seconds = await dropped(join(data, 'drop'), fileOf(folder, file, rows), () => {
      walBytes = Math.max(walBytes, statSync(join(data, 'detections.db-wal')).size);
    });
    slowest = Math.max(slowest, seconds);
    note(`${name}: ${file * rows} rows, ${Math.round(rows / seconds)} rows/s`);
    if (!stops.includes(file)) continue;
    const memory = appliance.peakMegabytes();
    await appliance.stop();
    measured.set(file, [
      { what: 'ingest, the slowest file', unit: 'rows/s', before: null, now: rows / slowest },
      cost('most memory resident', 'MB', memory),
      cost('detections.db-wal at its largest', 'MB', walBytes / 1e6),
      ...(await reads(data, bundle, key)),
    ]);
    appliance = await startAppliance(data, { bundle, settings: SETTINGS });
  }
  await appliance.stop();
  rmSync(data, { recursive: true });
  return measured;
}

/** A file of the series; created once, for both versions. */
function fileOf(folder: string, file: number, rows: number): string {
  const out = join(folder, `growth-${file}`);
  if (existsSync(out)) return join(out, readdirSync(out)[0] ?? '');
  return generated(out, rows, STREAMS, '--backfill', `part-${file}`, '--seed', `${file}`);
}

async function reads(data: string, bundle: string, key: string): Promise<Figure[]> {
  const database = join(data, 'detections.db');
  const starts: number[] = [];
  const start = async () => {
    const startMs = performance.now();
    const started = await startAppliance(data, { bundle, settings: SETTINGS });
    starts.push(performance.now() - startMs);
    return started;
  };
  const first = await start();
  const paths = { ...(await pagePaths(first.url, key)), 'period page': periodPaths(database) };
  const warm: Figure[] = [];
  const cold: Figure[] = [];
  for (const [what, list] of Object.entries(paths)) {
    await medianMs(first.url, key, list);
    warm.push(cost(`${what}, warm`, 'ms', await medianMs(first.url, key, list)));
  }
  await first.stop();
  for (const [what, list] of Object.entries(paths)) {
    dropFromCache(database);
    const appliance = await start();
    cold.push(cost(`${what}, cold`, 'ms', await medianMs(appliance.url, key, list)));
    await appliance.stop();
  }
  return [...warm, ...cold, cost('start, until it listens', 'ms', median(starts))];
}

/** Pages from all over one stream, and pages on which a filter matches nothing. */
async function pagePaths(url: string, key: string): Promise<Record<string, string[]>> {
  const base = `/v1/detections/changes?limit=1000&subscription_id=${OWN}`;
  const pages: string[] = [];
  let path = `${base}&since=${new Date(Date.now() - 86_400_000).toISOString()}`;
  for (;;) {
    pages.push(path);
    const page: { next_cursor: string; has_more: boolean } = JSON.parse(await get(url, key, path));
    if (!page.has_more) break;
    path = `${base}&cursor=${page.next_cursor}`;
  }
  const some = pages.filter((_, index) => index % Math.ceil(pages.length / SAMPLES) === 0);
  return {
    'page of one stream': some,
    'page of what a filter leaves nothing of': some.map((page) => `${page}&source_id=none`),
  };
}

/** Pages of a thousand rows, spread over the whole time range. */
function periodPaths(database: string): string[] {
  const { first, last } = rangeOf(database);
  const time = (second: number) => new Date(Math.floor(second) * 1000).toISOString();
  return Array.from({ length: SAMPLES }, (_, index) => {
    const from = first + ((last - first) * index) / SAMPLES;
    return `/v1/detections?from=${time(from)}&to=${time(last + 1)}&limit=1000&sort=first_detected_at&subscription_id=${OWN}&content_type=text`;
  });
}

async function medianMs(url: string, key: string, paths: readonly string[]): Promise<number> {
  const durations: number[] = [];
  for (const path of paths) {
    const startMs = performance.now();
    await get(url, key, path);
    durations.push(performance.now() - startMs);
  }
  return median(durations);
}

async function get(url: string, key: string, path: string): Promise<string> {
  const answer = await fetch(`${url}${path}`, { headers: authorization(key) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`);
  return text;
}

function dropFromCache(path: string): void {
  const toDrop = ['if=/dev/null', `of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'];
  execFileSync('dd', toDrop, { stdio: 'ignore' });
  const resident = Number(execFileSync('fincore', ['--noheadings', '--bytes', '--output', 'RES', path]));
  if (resident > 0) throw new Error(`${resident} bytes of ${path} are still in the page cache`);
}
