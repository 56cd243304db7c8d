/**
 * What the copy costs and gives: ingest that waits for it against ingest without one, how far a standby is behind while
 * rows are applied, how fast it takes over, what both machines serve together, and how fast a copy is restored.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { authorization, type Bench, CONNECTIONS, type Figure, median, SUBSCRIPTIONS } from './common.ts';
import { dropped, prepareAccess } from './ingest.ts';
import { runLoad } from './load.ts';
import { walkOf } from './pages.ts';
import { command, type Started, startAppliance } from './program.ts';

const LOOK_EVERY_MS = 50;
const PAGE_REQUESTS = 400;

export async function copies(bench: Bench): Promise<Figure[]> {
  const place = join(bench.folder, 'place');
  const other = join(bench.folder, 'other');
  const settings = { WIREWATCH_COPY_TO: place, WIREWATCH_COPY_WAIT: 'true' };
  const [file = ''] = readdirSync(join(bench.folder, 'exports'));
  const ingested = async (more: Record<string, string>) => {
    for (const folder of [bench.data, place]) rmSync(folder, { recursive: true, force: true });
    bench.key = prepareAccess(bench.data, SUBSCRIPTIONS);
    const appliance = await startAppliance(bench.data, undefined, more);
    const seconds = await dropped(join(bench.data, 'drop'), join(bench.folder, 'exports'), file);
    return { appliance, rate: bench.rows / seconds };
  };
  const plain: number[] = [];
  const waiting: number[] = [];
  for (let round = 0; round < bench.rounds; round += 1) {
    const without = await ingested({});
    await without.appliance.stop();
    plain.push(without.rate);
    const within = await ingested(settings);
    await within.appliance.stop();
    waiting.push(within.rate);
  }
  const restoredMs = await timed(
    async () => void withSettings(settings, () => command('restore', place, '--data', other)),
  );
  const figures: Figure[] = [
    { what: 'ingest that waits for the copy', unit: 'rows/s', before: median(plain), now: median(waiting) },
    { what: 'a copy', unit: 'bytes/detection', before: null, now: bytesIn(place) / bench.rows, isCost: true },
    { what: `restore of ${bench.rows} rows`, unit: 's', before: null, now: restoredMs / 1000, isCost: true },
  ];
  rmSync(other, { recursive: true });
  return [...figures, ...(await withStandby(bench, place, other, settings, file))];
}

/** The standby begins with an empty copy, and follows while all rows are applied. */
async function withStandby(
  bench: Bench,
  place: string,
  other: string,
  settings: Readonly<Record<string, string>>,
  file: string,
): Promise<Figure[]> {
  for (const folder of [bench.data, place]) rmSync(folder, { recursive: true, force: true });
  bench.key = prepareAccess(bench.data, SUBSCRIPTIONS);
  const drop = join(bench.data, 'drop');
  const writer = await startAppliance(bench.data, undefined, settings);
  const follows = {
    ...settings,
    WIREWATCH_COPY_STANDBY: 'true',
    WIREWATCH_INGEST_DROP: join(bench.folder, 'other-drop'),
  };
  while (!readdirSync(bench.folder).includes('place') || !readdirSync(place).includes('access'))
    await sleep(LOOK_EVERY_MS);
  withSettings(follows, () => command('restore', place, '--data', other));
  const standby = await startAppliance(other, undefined, follows);
  const lag = watchLag(bench.data, other);
  await dropped(drop, join(bench.folder, 'exports'), file);
  const behind = await lag.end();
  const alone = await pagesOf(bench, [writer]);
  const together = await pagesOf(bench, [writer, standby]);
  await writer.stop();
  const promotedMs = await timed(async () => {
    command('promote', '--data', other);
    await writes(standby);
  });
  const firstMs = await timed(async () => {
    // The same file again: what it takes until it is known as read.
    await dropped(join(bench.folder, 'other-drop'), join(bench.folder, 'exports'), file);
  });
  await standby.stop();
  return [
    {
      what: 'most entries that the standby was behind',
      unit: 'entries',
      before: null,
      now: behind.entries,
      isCost: true,
    },
    { what: 'the longest that it was behind', unit: 's', before: null, now: behind.ms / 1000, isCost: true },
    { what: 'pages of writer and standby together', unit: '1/s', before: alone, now: together },
    { what: 'from promote to the writer', unit: 's', before: null, now: promotedMs / 1000, isCost: true },
    {
      what: 'from there to a file that is archived',
      unit: 's',
      before: null,
      now: firstMs / 1000,
      isCost: true,
    },
  ];
}

/** Compares what the two databases have applied. */
function watchLag(data: string, other: string) {
  let isOver = false;
  const worst = { entries: 0, ms: 0 };
  const run = async () => {
    using one = openDatabase(join(data, 'detections.db'), 'read');
    using two = openDatabase(join(other, 'detections.db'), 'read');
    let equalMs = performance.now();
    for (let entries = 1; !isOver || entries > 0; await sleep(LOOK_EVERY_MS)) {
      entries = (readLogMark(one)?.entry ?? 0) - (readLogMark(two)?.entry ?? 0);
      worst.entries = Math.max(worst.entries, entries);
      if (entries <= 0) equalMs = performance.now();
      worst.ms = Math.max(worst.ms, performance.now() - equalMs);
    }
    return worst;
  };
  const running = run();
  return {
    end() {
      isOver = true;
      return running;
    },
  };
}

/** @returns pages per second of all machines, each with clients of its own */
async function pagesOf(bench: Bench, machines: readonly Started[]): Promise<number> {
  const loads = machines.map(({ url }) =>
    runLoad({
      url,
      headers: authorization(bench),
      connections: CONNECTIONS,
      requests: PAGE_REQUESTS,
      path: walkOf(1000)(''),
    }),
  );
  const measured = await Promise.all(loads);
  return measured.reduce((sum, { requests_per_second }) => sum + requests_per_second, 0);
}

async function writes({ url }: Started): Promise<void> {
  for (;;) {
    const { role }: { role: string } = JSON.parse(await (await fetch(`${url}/v1/health`)).text());
    if (role === 'writer') return;
    await sleep(5);
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Commands take the settings of this process. */
function withSettings<Result>(settings: Readonly<Record<string, string>>, work: () => Result): Result {
  Object.assign(process.env, settings);
  try {
    return work();
  } finally {
    for (const name of Object.keys(settings)) delete process.env[name];
  }
}

function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
