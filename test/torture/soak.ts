/**
 * Two hours of accelerated normal operation: windows, corrections, followers, keys created and revoked, backups,
 * scrubs, removals. Memory, open files, disk and write-ahead logs are sampled after each round, and must not grow.
 *
 * Each round does the same work on every machine, so the result does not depend on speed.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { NODE_FLAGS } from '../../src/packed.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { startAppliance } from '../support/appliance.ts';
import { freePort } from '../support/free-port.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { readProcess } from './metrics.ts';
import type { Outcome, Part, PartOptions } from './part.ts';
import { curveOf, growthOf, notFlat, SAMPLES_MIN, type Series } from './soak/series.ts';
import { startWorkload } from './soak/workload.ts';

const MINUTES = 120;
const MIB = 1024 * 1024;
/**
 * V8 collects garbage at its own time. The C library also keeps freed memory in up to eight arenas per processor, which
 * short-lived threads fill: over a hundred rounds they grew from 34 MiB to 110, of which 25 to 45 were in use.
 */
const MEMORY_GROWTH_MAX_MIB = 48;
/** The test's own connections come and go. */
const FILES_GROWTH_MAX = 6;
/**
 * The permanent data of a round: its windows, keys, log entries and corrections. The temporary subscription's rows take
 * forty times as much.
 */
const DISK_PER_ROUND_MAX_MIB = 0.0625;
/** SQLite checkpoints a write-ahead log at 1,000 pages (16 KiB each), and then reuses it. */
const WAL_GROWTH_MAX_MIB = 20;

export const soak: Part = {
  name: 'soak',
  about: 'accelerated normal operation; memory, open files, disk and write-ahead logs must not grow',
  minutes: MINUTES,
  run: (options) => soakWith(options, {}),
};

/** @param settings of the program; a test uses them to plant a leak */
export async function soakWith(
  options: PartOptions,
  settings: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const { seed, share, folder, onProgress } = options;
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
  const failures: string[] = [];
  const endMs = performance.now() + MINUTES * 60_000 * share;
  try {
    const workload = await startWorkload(appliance, { prng, folder, scrubRecord: dataFolder(data).verified });
    try {
      for (let round = 0; round < SAMPLES_MIN || performance.now() < endMs; round += 1) {
        await workload.round(round);
        samples.push(await sampleOf(data, `http://127.0.0.1:${adminPort}`));
        if (round % 10 === 0) onProgress(`round ${round}: ${JSON.stringify(samples.at(-1))}`);
      }
    } catch (error) {
      failures.push(`seed ${seed}, round ${samples.length}: ${inspect(error)}`);
    }
    if (failures.length === 0) appliance.cli(['verify']);
    const series = seriesOf(samples);
    if (samples.length >= SAMPLES_MIN) failures.push(...series.flatMap((each) => notFlat(each) ?? []));
    return {
      figures: { rounds: samples.length, ...workload.counts, ...figuresOf(series) },
      failures,
    };
  } finally {
    await appliance.stop();
    rmSync(join(folder, 'backup'), { recursive: true, force: true });
  }
}

const DATABASES = ['detections.db', 'access.db'];

interface Sample {
  readonly memoryMib: number;
  readonly files: number;
  readonly diskMib: number;
  readonly walMib: Readonly<Record<string, number>>;
}

async function sampleOf(data: string, admin: string): Promise<Sample> {
  const sizes = readdirSync(data, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return { path, bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0 };
  });
  const sum = (isIn: (path: string) => boolean) =>
    sizes.reduce((all, { path, bytes }) => all + (isIn(path) ? bytes : 0), 0) / MIB;
  return {
    ...(await readProcess(admin)),
    diskMib: sum((path) => !path.endsWith('-wal')),
    walMib: Object.fromEntries(DATABASES.map((name) => [name, sum((path) => path.endsWith(`${name}-wal`))])),
  };
}

function seriesOf(samples: readonly Sample[]): Series[] {
  return [
    {
      name: 'memory, MiB',
      samples: samples.map(({ memoryMib }) => memoryMib),
      growthMax: MEMORY_GROWTH_MAX_MIB,
    },
    { name: 'open files', samples: samples.map(({ files }) => files), growthMax: FILES_GROWTH_MAX },
    {
      name: 'disk, MiB',
      samples: samples.map(({ diskMib }) => diskMib),
      growthMax: DISK_PER_ROUND_MAX_MIB * samples.length,
    },
    ...DATABASES.map((name) => ({
      name: `write-ahead log of ${name}, MiB`,
      samples: samples.map(({ walMib }) => walMib[name] ?? 0),
      growthMax: WAL_GROWTH_MAX_MIB,
    })),
  ];
}

function figuresOf(series: readonly Series[]): Record<string, string> {
  return Object.fromEntries(
    series.map(({ name, samples, growthMax }) => {
      if (samples.length < SAMPLES_MIN) return [name, 'too few samples'];
      const growth = `growth ${growthOf(samples).toFixed(1)} of at most ${growthMax.toFixed(1)}`;
      return [name, `${curveOf(samples)} at most ${Math.max(...samples).toFixed(1)}, ${growth}`];
    }),
  );
}
