/**
 * `npm run bench`: each path of the appliance against its limit, within one run on one generated data set. What
 * counts is the ratio; machines differ, and so does one machine from minute to minute.
 *
 * | option | meaning |
 * |---|---|
 * | `--rows N`, `--rounds N` | 300,000 rows and 3 rounds unless given |
 * | `--only page`, `period`, `light`, `stall`, `follow`, `console`, `start` | a part of it |
 * | `--against COMMIT` | compares with an earlier version of the program instead |
 * | `--growth` | what millions of rows cost, see growth.ts; with `--against` also the earlier version |
 * | `--peers` | compares with other programs, see peers.ts |
 * | `--record` | writes what was measured into the documents |
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { against, withBuilt } from './against.ts';
import { type Bench, figureTable, type Row, SUBSCRIPTIONS } from './common.ts';
import { consoles } from './consoles.ts';
import { following } from './following.ts';
import { growth } from './growth.ts';
import { ingest } from './ingest.ts';
import { light } from './light.ts';
import { pages } from './pages.ts';
import { peers } from './peers.ts';
import { periods } from './periods.ts';
import { BUNDLE, command, type Started, startAppliance } from './program.ts';
import { type GroupName, ofFigure, ofRow, record } from './record.ts';
import { stalls } from './stalls.ts';
import { starts } from './start.ts';

const OPTIONS = {
  rows: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string' },
  against: { type: 'string' },
  growth: { type: 'boolean' },
  peers: { type: 'boolean' },
  record: { type: 'boolean' },
} as const;

const GROWTH_ROWS = 2_000_000;

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
    const keep = (name: GroupName, figures: Parameters<typeof record>[2]) => {
      if (values.record === true)
        record(
          name,
          `npm run bench -- ${process.argv.slice(2).join(' ')}`.replace(/( --)? --record/, ''),
          figures,
        );
    };
    if (values.growth === true) {
      const options = { folder, rows: Number(values.rows ?? GROWTH_ROWS), note };
      const commit = values.against;
      const figures =
        commit === undefined
          ? await growth(BUNDLE, null, options)
          : await withBuilt(commit, folder, (before) => growth(BUNDLE, before, options));
      note(figureTable(commit ?? '', figures));
      keep('growth', figures.map(ofFigure));
      return;
    }
    if (values.against !== undefined) {
      const figures = await against(values.against, bench);
      note(figureTable(values.against, figures));
      keep('earlier', figures.map(ofFigure));
      return;
    }
    if (wanted('start') && values.peers !== true) note(await starts(bench));
    if (values.only === 'start') return;
    if (values.only === 'console') {
      note(figureTable('alone', await consoles(bench)));
      return;
    }
    const subscriptions = ['--subscriptions', SUBSCRIPTIONS.join(',')];
    const exports = ['--out', join(folder, 'exports'), '--export', 'newswire', '--rows', `${rows}`];
    command('generate', ...exports, ...subscriptions);
    const results: Row[] = [await ingest(bench)];
    const appliance = await startAppliance(bench.data);
    try {
      if (values.peers === true) {
        const figures = await peers(bench, appliance.url);
        note(figureTable('the other', figures));
        keep('peers', figures.map(ofFigure));
        return;
      }
      if (wanted('page')) results.push(...(await pages(bench, appliance.url)));
      if (wanted('period')) results.push(...(await periods(bench, appliance.url)));
      if (wanted('light')) results.push(...(await light(bench, appliance.url)));
      print(results);
      const waits = wanted('stall') ? await anew(bench, appliance, (fresh) => stalls(bench, fresh)) : [];
      if (waits.length > 0) note(figureTable('a bare server', waits));
      const followed = wanted('follow') ? await following(bench, appliance) : [];
      if (followed.length > 0) note(figureTable('plain', followed));
      if (wanted('console')) await appliance.stop();
      const looked = wanted('console') ? await consoles(bench) : [];
      if (looked.length > 0) note(figureTable('alone', looked));
      keep('limits', [
        ...results.map(ofRow),
        ...waits.map(ofFigure),
        ...followed.map(ofFigure),
        ...looked.map(ofFigure),
      ]);
    } finally {
      await appliance.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** On an appliance that was started for it: the memory that another measure took is not in it. */
async function anew<Result>(
  bench: Bench,
  before: Started,
  measure: (appliance: Started) => Promise<Result>,
): Promise<Result> {
  await before.stop();
  const fresh = await startAppliance(bench.data);
  try {
    return await measure(fresh);
  } finally {
    await fresh.stop();
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
