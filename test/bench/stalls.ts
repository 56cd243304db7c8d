/**
 * The latency of light requests and the memory while a million rows are ingested and two clients scan the stream with
 * filters that match nothing. Light requests to an idle bare server are measured at the same time: both include the
 * delays of the busy machine.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { authorization, type Bench, type Figure, SUBSCRIPTIONS } from './common.ts';
import { archived } from './ingest.ts';
import { type Load, runLoad } from './load.ts';
import { command, type Started, startBare } from './program.ts';

const ROWS = 1_000_000;
/** Sequential light requests: each samples how long a server was blocked. */
const SAMPLES_A_TURN = 200;

export async function stalls(bench: Bench, appliance: Started): Promise<Figure[]> {
  const { url } = appliance;
  const drop = join(bench.data, 'drop');
  const file = 'newswire.backfill-stalls.ndjson.gz';
  const backfill = ['--backfill', 'stalls', '--rows', `${ROWS}`, '--export', 'newswire', '--seed', 'stalls'];
  const subscriptions = ['--subscriptions', SUBSCRIPTIONS.join(',')];
  command('generate', '--out', join(bench.folder, 'stalls'), ...backfill, ...subscriptions);
  const bare = await startBare('fixed');
  try {
    renameSync(join(bench.folder, 'stalls', file), join(drop, file));
    let isOver = false;
    const ingested = archived(drop, file).then(() => {
      isOver = true;
    });
    const headers = authorization(bench);
    const scan = async () => {
      const path = scanOf(new Date(Date.now() - 3_600_000).toISOString());
      // Ingest needs both cores of a small machine: the measurement must not occupy one.
      while (!isOver) await runLoad({ url, connections: 1, requests: 20, headers, mayRest: true, path });
    };
    const sample = async (load: Pick<Load, 'url' | 'path' | 'status'>) => {
      const seen: number[] = [];
      while (!isOver) {
        const turn = { connections: 1, requests: SAMPLES_A_TURN, headers, mayRest: true };
        seen.push(...(await runLoad({ ...turn, ...load })).durations_ms);
      }
      return seen.toSorted((a, b) => a - b);
    };
    const [, , , ours, theirs] = await Promise.all([
      ingested,
      scan(),
      scan(),
      sample({ url, path: () => '/v1/detections/t.1.1.1', status: 404 }),
      sample({ url: bare.url, path: () => '/' }),
    ]);
    const at = (durations: readonly number[], share: number) =>
      durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0;
    const figure = (what: string, share: number): Figure => ({
      what: `light request while ${ROWS.toLocaleString('en')} rows are ingested and two clients scan, ${what}`,
      unit: 'ms',
      before: at(theirs, share),
      now: at(ours, share),
      isCost: true,
    });
    return [
      figure('99 of 100', 0.99),
      figure('999 of 1,000', 0.999),
      figure(`longest of ${ours.length}`, 1),
      {
        what: 'most memory resident meanwhile',
        unit: 'MB',
        before: null,
        now: appliance.peakMegabytes() ?? 0,
        isCost: true,
      },
    ];
  } finally {
    await bare.stop();
  }
}

/** Scans the stream from start to end, repeatedly, with a filter that matches nothing. */
function scanOf(since: string): Load['path'] {
  const page = '/v1/detections/changes?limit=1000&source_id=none';
  return (_, answer) => {
    const cursor = /"next_cursor":"([^"]+)","has_more":true/.exec(answer?.toString('latin1') ?? '')?.[1];
    return cursor === undefined ? `${page}&since=${since}` : `${page}&cursor=${cursor}`;
  };
}
