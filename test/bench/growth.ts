/**
 * The cost of a long history (`--growth`): reads files of two million rows in twenty streams, and measures after three
 * and after five of them. With `--against COMMIT`, also measures an earlier version after three.
 *
 * "Cold" means that the database's file was dropped from the page cache
 * (https://man7.org/linux/man-pages/man1/dd.1.html, nocache), which fincore confirms, and that the appliance was
 * restarted.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Figure, median, rangeOf } from './common.ts';
import { isArchived, prepareAccess } from './ingest.ts';
import { command, type Started, startAppliance } from './program.ts';

const STREAMS = Array.from({ length: 20 }, (_, index) => 7001 + index);
const [OWN] = STREAMS;
const SAMPLES = 20;
const FILES = [3, 5];

export interface GrowthOptions {
  readonly folder: string;
  /** Per file. */
  readonly rows: number;
  readonly note: (text: string) => void;
}

interface Measures {
  readonly [what: string]: { readonly unit: string; readonly value: number; readonly isCost: boolean };
}

/** @param before the bundle of an earlier version; null: none */
export async function growth(now: string, before: string | null, options: GrowthOptions): Promise<Figure[]> {
  const [few = 3, many = 5] = FILES;
  const earlier = before === null ? null : (await grown(before, 'before', [few], options)).get(few);
  const later = await grown(now, 'now', [few, many], options);
  return FILES.flatMap((files) =>
    Object.entries(later.get(files) ?? {}).map(([what, { unit, value, isCost }]) => ({
      what: `${((files * options.rows) / 1e6).toLocaleString('en-US')} million rows: ${what}`,
      unit,
      before: files === few ? (earlier?.[what]?.value ?? null) : null,
      now: value,
      isCost,
    })),
  );
}

/** @returns results by the number of files read */
async function grown(
  bundle: string,
  name: string,
  stops: readonly number[],
  { folder, rows, note }: GrowthOptions,
): Promise<Map<number, Measures>> {
  const data = join(folder, `growth-${name}`);
  const key = prepareAccess(data, STREAMS, bundle);
  const measured = new Map<number, Measures>();
  let appliance = await startAppliance(data, bundle);
  const seconds: number[] = [];
  let walBytes = 0;
  for (let file = 1; file <= Math.max(...stops); file += 1) {
    const path = generated(folder, file, rows);
    const read = await ingested(data, path);
    seconds.push(read.seconds);
    walBytes = Math.max(walBytes, read.walBytes);
    note(`${name}: ${file * rows} rows, ${Math.round(rows / read.seconds)} rows/s`);
    if (!stops.includes(file)) continue;
    const memory = appliance.peakMegabytes() ?? 0;
    await appliance.stop();
    measured.set(file, {
      'ingest, the slowest file': { unit: 'rows/s', value: rows / Math.max(...seconds), isCost: false },
      'most memory resident': { unit: 'MB', value: memory, isCost: true },
      'detections.db-wal at its largest': { unit: 'MB', value: walBytes / 1e6, isCost: true },
      ...(await reads(data, bundle, key)),
    });
    appliance = await startAppliance(data, bundle);
  }
  await appliance.stop();
  rmSync(data, { recursive: true });
  return measured;
}

/** A file of the series; created once, for both versions. */
function generated(folder: string, file: number, rows: number): string {
  const out = join(folder, `growth-${file}`);
  if (!existsSync(out)) {
    const backfill = ['--backfill', `part-${file}`, '--seed', `${file}`, '--rows', `${rows}`];
    const ids = ['--subscriptions', STREAMS.join(',')];
    command('generate', '--out', out, '--export', 'newswire', ...backfill, ...ids);
  }
  return join(out, readdirSync(out)[0] ?? '');
}

async function ingested(data: string, path: string): Promise<{ seconds: number; walBytes: number }> {
  const drop = join(data, 'drop');
  const name = path.slice(path.lastIndexOf('/') + 1);
  copyFileSync(path, join(drop, `${name}.part`));
  const startMs = performance.now();
  renameSync(join(drop, `${name}.part`), join(drop, name));
  let walBytes = 0;
  while (!isArchived(drop, name)) {
    walBytes = Math.max(walBytes, statSync(join(data, 'detections.db-wal')).size);
    await sleep(20);
  }
  return { seconds: (performance.now() - startMs) / 1000, walBytes };
}

async function reads(data: string, bundle: string, key: string): Promise<Measures> {
  const database = join(data, 'detections.db');
  const starts: number[] = [];
  const start = async () => {
    const startMs = performance.now();
    const started = await startAppliance(data, bundle);
    starts.push(performance.now() - startMs);
    return started;
  };
  const first = await start();
  const paths = { ...(await pagePaths(first, key)), 'period page': periodPaths(database) };
  const measures: Record<string, { unit: string; value: number; isCost: boolean }> = {};
  const figure = (what: string, value: number) => {
    measures[what] = { unit: 'ms', value, isCost: true };
  };
  for (const [what, list] of Object.entries(paths)) {
    await timed(first, key, list);
    figure(`${what}, warm`, median(await timed(first, key, list)));
  }
  await first.stop();
  for (const [what, list] of Object.entries(paths)) {
    dropFromCache(database);
    const cold = await start();
    figure(`${what}, cold`, median(await timed(cold, key, list)));
    await cold.stop();
  }
  figure('start, until it listens', median(starts));
  return measures;
}

/** Pages from all over one stream, and pages on which a filter matches nothing. */
async function pagePaths(started: Started, key: string): Promise<Record<string, string[]>> {
  const base = `/v1/detections/changes?limit=1000&subscription_id=${OWN}`;
  const pages: string[] = [];
  let path = `${base}&since=${new Date(Date.now() - 86_400_000).toISOString()}`;
  for (;;) {
    pages.push(path);
    const page: { next_cursor: string; has_more: boolean } = JSON.parse(await get(started, key, path));
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

async function timed(started: Started, key: string, paths: readonly string[]): Promise<number[]> {
  const durations: number[] = [];
  for (const path of paths) {
    const startMs = performance.now();
    await get(started, key, path);
    durations.push(performance.now() - startMs);
  }
  return durations;
}

async function get({ url }: Started, key: string, path: string): Promise<string> {
  const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`);
  return text;
}

function dropFromCache(path: string): void {
  execFileSync('dd', ['if=/dev/null', `of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], {
    stdio: 'ignore',
  });
  const resident = execFileSync('fincore', ['--noheadings', '--bytes', '--output', 'RES', path])
    .toString()
    .trim();
  if (Number(resident) > 0) throw new Error(`${resident} bytes of ${path} are still in the page cache`);
}
