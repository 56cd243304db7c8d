/**
 * What the copy costs and gives: ingest that waits for it against ingest without one, how far a standby is behind while
 * rows are applied, how fast it takes over, what both machines serve together, and how fast a copy is restored.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { filesBelow } from '../support/test-folder.ts';
import { type Bench, bytesOf, cost, type Figure, inTurn, rate, SUBSCRIPTIONS, secondsOf } from './common.ts';
import { dropped, exportOf, generated, prepareAccess } from './ingest.ts';
import { authorization, runLoad, walkOf } from './load.ts';
import { command, type Started, startAppliance } from './program.ts';

const LOOK_EVERY_MS = 50;
const PAGE_REQUESTS = 400;
const FIRST_ROWS = 1000;

export async function copies(bench: Bench): Promise<Figure[]> {
  const below = (name: string) => join(bench.folder, name);
  const [data, place, other] = [below('data'), below('place'), below('other')];
  const settings = { WIREWATCH_COPY_TO: place, WIREWATCH_COPY_WAIT: 'true' };
  const file = exportOf(bench);
  const begin = async (more: Readonly<Record<string, string>>) => {
    for (const folder of [data, place]) rmSync(folder, { recursive: true, force: true });
    const key = prepareAccess(data);
    return { key, appliance: await startAppliance(data, { settings: more }) };
  };
  const ingested = async (more: Readonly<Record<string, string>>) => {
    const { appliance } = await begin(more);
    const seconds = await applied(data, file);
    await appliance.stop();
    return bench.rows / seconds;
  };
  const rates = await inTurn([{}, settings], { rounds: bench.rounds, warmUps: 0 }, ingested);
  const restore = (more: Readonly<Record<string, string>>) =>
    command(['restore', place, '--data', other], { settings: more });
  const restored = await secondsOf(() => restore(settings));
  const figures: Figure[] = [
    rate('ingest that waits for the copy', 'rows/s', rates),
    cost('a copy', 'bytes/detection', bytesOf(filesBelow(place)) / bench.rows),
    cost(`restore of ${bench.rows.toLocaleString('en-US')} rows`, 's', restored),
  ];

  // The standby begins with an empty copy, and follows while all rows are applied.
  rmSync(other, { recursive: true });
  const { key, appliance: writer } = await begin(settings);
  const otherDrop = below('other-drop');
  const follows = { ...settings, WIREWATCH_COPY_STANDBY: 'true', WIREWATCH_INGEST_DROP: otherDrop };
  while (!existsSync(join(place, 'access'))) await sleep(LOOK_EVERY_MS);
  restore(follows);
  const standby = await startAppliance(other, { settings: follows });
  const lag = watchLag(data, other);
  await applied(data, file);
  const behind = await lag.end();
  const alone = await pagesOf([writer], key);
  const together = await pagesOf([writer, standby], key);
  await writer.stop();
  const promoted = await secondsOf(async () => {
    command(['promote', '--data', other]);
    while (!(await isWriter(standby))) await sleep(5);
  });
  const first = await dropped(otherDrop, generated(below('first'), FIRST_ROWS, SUBSCRIPTIONS));
  await standby.stop();
  return [
    ...figures,
    cost('most entries that the standby was behind', 'entries', behind.entries),
    cost('the longest that it was behind', 's', behind.ms / 1000),
    { what: 'pages of writer and standby together', unit: '1/s', before: alone, now: together },
    cost('from promote to the writer', 's', promoted),
    cost(`from there to a file of ${FIRST_ROWS.toLocaleString('en-US')} rows that is archived`, 's', first),
  ];
}

/** @returns seconds until the rows of a file can be seen: it is archived before, and its transaction may wait */
async function applied(data: string, file: string): Promise<number> {
  using db = openDatabase(join(data, 'detections.db'), 'read');
  const before = readLogMark(db)?.entry;
  return await secondsOf(async () => {
    await dropped(join(data, 'drop'), file);
    while (readLogMark(db)?.entry === before) await sleep(2);
  });
}

/** Compares what the two databases have applied. */
function watchLag(data: string, other: string) {
  let isOver = false;
  const worst = { entries: 0, ms: 0 };
  const run = async () => {
    using one = openDatabase(join(data, 'detections.db'), 'read');
    using two = openDatabase(join(other, 'detections.db'), 'read');
    let equalMs = performance.now();
    for (let isLast = false; !isLast; await sleep(LOOK_EVERY_MS)) {
      // The last look is one after the end.
      isLast = isOver;
      const entries = (readLogMark(one)?.entry ?? 0) - (readLogMark(two)?.entry ?? 0);
      worst.entries = Math.max(worst.entries, entries);
      if (entries <= 0) equalMs = performance.now();
      else isLast = false;
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
async function pagesOf(machines: readonly Started[], key: string): Promise<number> {
  const load = { headers: authorization(key), requests: PAGE_REQUESTS };
  const rates = await Promise.all(machines.map(({ url }) => runLoad({ ...load, url, path: walkOf() })));
  return rates.reduce((sum, rate) => sum + rate, 0);
}

async function isWriter({ url }: Started): Promise<boolean> {
  const { role }: { role: string } = JSON.parse(await (await fetch(`${url}/v1/health`)).text());
  return role === 'writer';
}
