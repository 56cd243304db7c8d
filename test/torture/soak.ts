/**
 * Two hours of accelerated normal operation: windows, corrections, followers, keys created and revoked, backups,
 * scrubs, removals. Memory, open files, disk and write-ahead logs are sampled after each round, and must not grow.
 *
 * Each round does the same work on every machine, so the result does not depend on speed.
 */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { NODE_FLAGS } from '../../src/packed.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { formatMs } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { median } from '../bench/common.ts';
import { type Appliance, createKey, startAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRows, nextWindowMs, type Row } from '../support/export-files.ts';
import { Follower, fresh, getAs } from '../support/followers.ts';
import { freePort } from '../support/free-port.ts';
import { isErrorLine } from '../support/installation-state.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { filesBelow } from '../support/test-folder.ts';
import { until } from '../support/until.ts';
import { type Part, type PartOptions, readProcess, type Tally } from './part.ts';

const MINUTES = 120;
/** With fewer, the medians of quarters mean little. */
const ROUNDS_MIN = 16;
const MIB = 1024 * 1024;
/** By the name of what is measured, with its unit: the allowed growth from the first quarter to the last. */
const GROWTH_MAX = {
  /**
   * V8 collects garbage at its own time. The C library also keeps freed memory in up to eight arenas per processor, which
   * short-lived threads fill: over a hundred rounds they grew from 34 MiB to 110, of which 25 to 45 were in use. A dozen
   * rounds, as a test runs, end before that does: there 30 to 50 were seen.
   */
  'memory, MiB': 64,
  /** The test's own connections come and go. */
  'open files': 6,
  /**
   * Times the rounds: the permanent data of a round, its windows, keys, log entries and corrections. The temporary
   * subscription's rows take forty times as much.
   */
  'disk, MiB': 0.0625,
  /** To be looked at: a busy machine is slower. */
  'removal, ms': Infinity,
  /** SQLite checkpoints a write-ahead log at 1,000 pages (16 KiB each), and then reuses it. */
  'write-ahead log of detections.db, MiB': 20,
  'write-ahead log of access.db, MiB': 20,
};
type Sample = Readonly<Record<keyof typeof GROWTH_MAX, number>>;

export const soak: Part = {
  name: 'soak',
  about: 'accelerated normal operation; memory, open files, disk and write-ahead logs must not grow',
  run: (options) => soakWith(options, {}),
};

/** @param settings of the program; a test uses them to plant a leak */
export async function soakWith(
  options: PartOptions,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const { seed, share, folder, tally, onProgress } = options;
  const adminPort = await freePort();
  const appliance = await startAppliance({
    WIREWATCH_ADMIN_PORT: `${adminPort}`,
    // Shortens the minimum time between two scrubs to 18 seconds.
    WIREWATCH_HASTE: '200',
    // As in the executable.
    NODE_OPTIONS: NODE_FLAGS.join(' '),
    ...settings,
  });
  const { data } = appliance;
  const prng = seededPrng(seed, 'soak');
  const samples: Sample[] = [];
  const { failures, figures } = tally;
  const endMs = performance.now() + MINUTES * 60_000 * share;
  try {
    const play = startWorkload(appliance, { prng, folder, scrubRecord: dataFolder(data).verified }, tally);
    try {
      for (let round = 0; round < ROUNDS_MIN || performance.now() < endMs; round += 1) {
        const removalMs = await play(round);
        tally.count('rounds');
        samples.push(await sampleOf(data, `http://127.0.0.1:${adminPort}`, removalMs));
        if (round % 10 === 0) onProgress(`round ${round}: ${JSON.stringify(samples.at(-1))}`);
      }
    } catch (error) {
      failures.push(`seed ${seed}, round ${samples.length}: ${inspect(error)}`);
    }
    if (failures.length === 0) appliance.cli(['verify']);
    // A round has failed early.
    if (samples.length < ROUNDS_MIN) return;
    for (const name of Object.keys(GROWTH_MAX) as (keyof Sample)[]) {
      const series = samples.map((sample) => sample[name]);
      const growthMax = GROWTH_MAX[name] * (name === 'disk, MiB' ? samples.length : 1);
      figures[name] = shownOf(series, growthMax);
      const why = notFlat(name, series, growthMax);
      if (why !== null) failures.push(why);
    }
  } finally {
    await appliance.stop();
    rmSync(join(folder, 'backup'), { recursive: true, force: true });
  }
}

async function sampleOf(data: string, admin: string, removalMs: number): Promise<Sample> {
  const bytesOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const paths = filesBelow(data);
  const sum = (isIn: (path: string) => boolean) =>
    paths.filter(isIn).reduce((all, path) => all + bytesOf(path), 0) / MIB;
  const { memoryMib, files } = await readProcess(admin);
  return {
    'memory, MiB': memoryMib,
    'open files': files,
    'disk, MiB': sum((path) => !path.endsWith('-wal')),
    'removal, ms': removalMs,
    'write-ahead log of detections.db, MiB': sum((path) => path.endsWith('detections.db-wal')),
    'write-ahead log of access.db, MiB': sum((path) => path.endsWith('access.db-wal')),
  };
}

/** Rows of a round's temporary subscription. */
const PASSING_ROWS = 400;
/** Permanent rows, which every round corrects. */
const LASTING_ROWS = 20;
const BACKUP_EVERY_ROUNDS = 4;
/** On an idle machine, these rounds take the 18 seconds that must pass between two scrubs. */
const SCRUB_EVERY_ROUNDS = 12;
/** The number of past windows for rounds; later rounds use backfills. */
const WINDOW_ROUNDS_MAX = 900;

/**
 * Normal operation in rounds: each does the same work, and deletes most of its data at the end.
 *
 * @param folder for backups; @param scrubRecord the record of the last scrub: without it, a scrub is due
 * @returns plays a round, and tells how long its removal took (ms); @throws Error if a check of it fails
 */
function startWorkload(
  appliance: Appliance,
  { prng, folder, scrubRecord }: { prng: Prng; folder: string; scrubRecord: string },
  tally: Tally,
): (round: number) => Promise<number> {
  const lasting = newRows(LASTING_ROWS);
  const scores = new Map<string, number>();
  const follower = new Follower();

  const drop = async (name: string, rows: readonly Row[]) => {
    const { msg, destination } = await appliance.dropped(name, ndjson(rows));
    if (msg !== 'file applied') throw new Error(`${name}: ${msg}`);
    // Like an operator who moves the archive elsewhere.
    rmSync(join(appliance.drop, String(destination)));
    tally.count('files applied');
  };
  /** The name of a newswire file for the next window, or of a backfill. */
  const nameOf = (number: number, part: string) =>
    number % 2 === 0 && number < WINDOW_ROUNDS_MAX
      ? fileName('newswire', nextWindowMs())
      : `newswire.backfill-r${number}-${part}.ndjson`;

  const correctLasting = async (number: number) => {
    const rows = lasting.map((row) => {
      const strength_score = prng.below(101);
      scores.set(idOf(row), strength_score);
      const last_scored_at = formatMs(Date.parse(String(row.last_scored_at)) + number * 1000);
      return { ...row, strength_score, last_scored_at };
    });
    const untilRowsCome = getAs(appliance.serving, appliance.key, { headers: { prefer: 'wait=60' } });
    await Promise.all([follower.follow(untilRowsCome), drop(nameOf(number, 'lasting'), rows)]);
    tally.count('corrections', rows.length);
    await until('the follower to have the corrections', async () => {
      await follower.follow(getAs(appliance.serving, appliance.key));
      return [...scores].every(([id, score]) => follower.copy.get(id)?.strength.score === score);
    });
  };

  return async (number) => {
    await correctLasting(number);
    const dropPassing = (rows: readonly Row[]) => drop(nameOf(number, 'passing'), rows);
    const removalMs = await passSubscription(appliance, 100_000 + number, dropPassing);
    tally.count('keys made and revoked');
    tally.count('removals');
    if (number % BACKUP_EVERY_ROUNDS === 1) {
      appliance.cli(['backup', join(folder, 'backup')]);
      tally.count('backups');
    }
    if (number % SCRUB_EVERY_ROUNDS === 2) {
      rmSync(scrubRecord, { force: true });
      await appliance.logged(/^detections\.db was compared with the log$/);
      tally.count('scrubs');
    }
    const [error] = appliance.serving().takeLog().filter(isErrorLine);
    if (error !== undefined) throw new Error(`logged: ${JSON.stringify(error)}`);
    return removalMs;
  };
}

/**
 * Adds a subscription, drops its rows, reads them with a new key, revokes the key and removes the subscription.
 * @returns how long the removal took, milliseconds
 */
async function passSubscription(
  appliance: Appliance,
  subscription: number,
  drop: (rows: readonly Row[]) => Promise<void>,
): Promise<number> {
  const { cli } = appliance;
  cli(['subscription', 'add', `${subscription}`, '--account', 'agency']);
  const key = createKey(cli, 'agency', `${subscription}`);
  const rows = newRows(PASSING_ROWS, { subscription_id: subscription });
  await drop(rows);
  const { copy: read } = await fresh(getAs(appliance.serving, key));
  const missing = rows.filter((row) => !read.has(idOf(row)));
  if (read.size !== rows.length || missing.length > 0)
    throw new Error(`subscription ${subscription}: ${read.size} detections were read of ${rows.length}`);
  cli(['key', 'revoke', key.split('_')[2] ?? '', '--yes']);
  const { status } = await appliance.get('/v1/me', key);
  if (status !== 401) throw new Error(`subscription ${subscription}: its revoked key got ${status}`);
  const startMs = performance.now();
  cli(['subscription', 'remove', `${subscription}`, '--yes']);
  return performance.now() - startMs;
}

const QUARTERS = 4;
/** This share of the samples at the start is ignored: caches fill, and code is compiled. */
const WARM_UP_SHARE = 1 / 8;

/** The medians of the quarters of what is left after a warm-up. @param samples one for each round, in order */
function quartersOf(samples: readonly number[]): number[] {
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE));
  return Array.from({ length: QUARTERS }, (_, quarter) =>
    median(warm.slice((warm.length * quarter) / QUARTERS, (warm.length * (quarter + 1)) / QUARTERS)),
  );
}

/**
 * Growth from the first quarter to the last: the slope of the line through the medians of the quarters (least squares),
 * times the three steps between them. A single high sample changes nothing, and a leak cannot hide behind one.
 */
export function growthOf(samples: readonly number[]): number {
  const medians = quartersOf(samples);
  const middle = (QUARTERS - 1) / 2;
  const slope =
    medians.reduce((sum, each, at) => sum + (at - middle) * each, 0) /
    medians.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return slope * (QUARTERS - 1);
}

/** @returns one sentence if what is named, with its unit, grows by more than is allowed; otherwise null */
export function notFlat(name: string, samples: readonly number[], growthMax: number): string | null {
  const growth = growthOf(samples);
  if (growth <= growthMax) return null;
  return `${name} grew by ${growth.toFixed(1)} from the first quarter to the last; at most ${growthMax.toFixed(1)} is allowed`;
}

function shownOf(samples: readonly number[], growthMax: number): string {
  const medians = quartersOf(samples).map((each) => each.toFixed(1));
  const limit = growthMax === Infinity ? '' : ` of at most ${growthMax.toFixed(1)}`;
  return `medians ${medians.join(', ')}; at most ${Math.max(...samples).toFixed(1)}; growth ${growthOf(samples).toFixed(1)}${limit}`;
}
