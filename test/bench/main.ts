/**
 * `npm run bench`: each path of the appliance against its limit, within one run on one generated data set. What
 * counts is the ratio; machines differ, and so does one machine from minute to minute.
 *
 * Options: --rows N (300,000), --rounds N (3), --only page|period|light|stall|start; --against COMMIT compares with an
 * earlier version of the program instead.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { against } from './against.ts';
import { type Bench, type Row, SUBSCRIPTIONS } from './common.ts';
import { ingest } from './ingest.ts';
import { light } from './light.ts';
import { pages } from './pages.ts';
import { periods } from './periods.ts';
import { command, startAppliance } from './program.ts';
import { stalls } from './stalls.ts';
import { starts } from './start.ts';

const OPTIONS = {
  rows: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string' },
  against: { type: 'string' },
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-bench-'));
  const rows = Number(values.rows ?? 300_000);
  const bench: Bench = {
    folder,
    data: join(folder, 'data'),
    rows,
    rounds: Number(values.rounds ?? 3),
    key: '',
  };
  const wanted = (name: string) => values.only === undefined || values.only === name;
  try {
    note(
      `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${rows} rows`,
    );
    if (values.against !== undefined) {
      note(await against(values.against, bench));
      return;
    }
    if (wanted('start')) note(await starts(bench));
    if (values.only === 'start') return;
    const subscriptions = ['--subscriptions', SUBSCRIPTIONS.join(',')];
    const exports = ['--out', join(folder, 'exports'), '--export', 'newswire', '--rows', `${rows}`];
    command('generate', ...exports, ...subscriptions);
    const results: Row[] = [await ingest(bench)];
    const appliance = await startAppliance(bench.data);
    try {
      if (wanted('page')) results.push(...(await pages(bench, appliance.url)));
      if (wanted('period')) results.push(...(await periods(bench, appliance.url)));
      if (wanted('light')) results.push(...(await light(bench, appliance.url)));
      print(results);
      if (wanted('stall')) note(await stalls(bench, appliance.url));
    } finally {
      await appliance.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function print(results: readonly Row[]): void {
  const lines = results.map((row) => {
    const ratio = row.appliance / row.limit;
    const verdict = ratio >= row.reach ? 'reached' : 'NOT REACHED';
    const figures = `${Math.round(row.appliance)} / ${Math.round(row.limit)} ${row.unit}`;
    return `| ${row.what} | ${row.against} | ${figures} | ${ratio.toFixed(2)} | ${row.reach} | ${verdict} |`;
  });
  note(['| what | against | measured | ratio | reach | |', '|---|---|---|---|---|---|', ...lines].join('\n'));
}

function note(text: string): void {
  process.stdout.write(`${text}\n`);
}

await main();
