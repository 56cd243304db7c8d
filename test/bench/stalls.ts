/**
 * How long a light request waits while a million rows are ingested and two clients scan the stream with filters
 * that match nothing: what is measured is the appliance's event loop, seen from outside.
 */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { authorization, type Bench, SUBSCRIPTIONS } from './common.ts';
import { archived } from './ingest.ts';
import { type Measured, runLoad } from './load.ts';
import { command } from './program.ts';

const ROWS = 1_000_000;
/** Light requests come one after the other: each is a sample of how long the appliance was not answering. */
const SAMPLES_A_TURN = 200;

/** @returns what was seen, in words */
export async function stalls(bench: Bench, url: string): Promise<string> {
  const drop = join(bench.data, 'drop');
  const file = 'newswire.backfill-stalls.ndjson.gz';
  const backfill = ['--backfill', 'stalls', '--rows', `${ROWS}`, '--export', 'newswire', '--seed', 'stalls'];
  command(
    'generate',
    '--out',
    join(bench.folder, 'stalls'),
    ...backfill,
    '--subscriptions',
    SUBSCRIPTIONS.join(','),
  );
  renameSync(join(bench.folder, 'stalls', file), join(drop, file));
  let isOver = false;
  const ingested = archived(drop, file).then(() => {
    isOver = true;
  });
  const headers = authorization(bench);
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const first = `/v1/detections/changes?limit=1000&source_id=none&since=${since}`;
  const scan = async () => {
    while (!isOver) {
      await runLoad({
        url,
        connections: 1,
        requests: 20,
        headers,
        // Ingest needs both processors of a small machine: who measures must not take one.
        mayRest: true,
        path: (_, answer) => {
          const cursor = /"next_cursor":"([^"]+)","has_more":true/.exec(
            answer?.toString('latin1') ?? '',
          )?.[1];
          return cursor === undefined
            ? first
            : `/v1/detections/changes?limit=1000&source_id=none&cursor=${cursor}`;
        },
      });
    }
  };
  const seen: Measured[] = [];
  const sample = async () => {
    while (!isOver) {
      seen.push(
        await runLoad({
          url,
          connections: 1,
          requests: SAMPLES_A_TURN,
          headers,
          path: () => '/v1/detections/t.1.1.1',
          status: 404,
          mayRest: true,
        }),
      );
    }
  };
  await Promise.all([ingested, scan(), scan(), sample()]);
  const worst = Math.max(...seen.map(({ max_ms }) => max_ms));
  const p99 = seen.map(({ p99_ms }) => p99_ms).toSorted((a, b) => a - b)[Math.floor(seen.length / 2)] ?? 0;
  return (
    `light requests while ${ROWS} rows are ingested and two clients scan: ` +
    `p99 ${p99.toFixed(1)} ms (median of ${seen.length} turns of ${SAMPLES_A_TURN}), longest ${worst.toFixed(1)} ms; ` +
    `no stall over 100 ms: ${worst <= 100 ? 'reached' : 'NOT REACHED'}`
  );
}
