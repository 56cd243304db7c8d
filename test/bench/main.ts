/**
 * `npm run bench`: measures each path of the appliance against its limit, in the same run and on the same generated
 * data. Only ratios are comparable: machines differ, and so does one machine from minute to minute.
 *
 * | option | meaning |
 * |---|---|
 * | `--rows N`, `--rounds N` | 300,000 rows and 3 rounds unless given |
 * | `--only page`, `period`, `light`, `fair`, `stall`, `follow`, `console`, `copy`, `start`, `revoke`, `mapped` | only this part |
 * | `--against COMMIT` | compares with an earlier version of the program instead |
 * | `--growth` | the cost of millions of rows, see growth.ts; with `--against` also of the earlier version |
 * | `--peers` | compares with other programs, see peers.ts |
 * | `--record` | records the figures for the documents |
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { against, withBuilt } from './against.ts';
import { type Bench, type Figure, figureTable, periodOf, type Row, SUBSCRIPTIONS } from './common.ts';
import { consoles } from './consoles.ts';
import { copies } from './copies.ts';
import { fairness } from './fairness.ts';
import { following } from './following.ts';
import { growth } from './growth.ts';
import { ingest } from './ingest.ts';
import { light } from './light.ts';
import { mapped } from './mapped.ts';
import { pages } from './pages.ts';
import { peers } from './peers.ts';
import { periods } from './periods.ts';
import { BUNDLE, command, type Started, startAppliance } from './program.ts';
import { type GroupName, ofFigure, ofRow, record } from './record.ts';
import { revocations } from './revocations.ts';
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

const { values } = parseArgs({ options: OPTIONS });

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-bench-'));
  const rows = Number(values.rows ?? 300_000);
  const rounds = Number(values.rounds ?? 3);
  const bench: Bench = { folder, data: join(folder, 'data'), rows, rounds, key: '' };
  try {
    note(
      `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${rows} rows`,
    );
    if (values.growth === true) return keep('growth', values.against ?? '', await growthOf(folder));
    if (values.against !== undefined)
      return keep('earlier', values.against, await against(values.against, bench));
    if (isWanted('start') && values.peers !== true) note(await starts(bench));
    if (values.only === 'start') return;
    if (values.only === 'console') return note(figureTable('alone', await consoles(bench)));
    const subscriptions = ['--subscriptions', SUBSCRIPTIONS.join(',')];
    const exports = ['--out', join(folder, 'exports'), '--export', 'newswire', '--rows', `${rows}`];
    command('generate', ...exports, ...subscriptions);
    if (values.only === 'copy') return keep('copy', 'without a copy', await copies(bench));
    if (values.only === 'revoke') return note(figureTable('at rest', await revocations(bench)));
    const isMapped = isWanted('mapped') && values.peers !== true;
    const inOtherShape = isMapped ? [await mapped({ ...bench, data: join(folder, 'mapped') })] : [];
    if (values.only === 'mapped') return print(inOtherShape);
    const ingested = [await ingest(bench), ...inOtherShape];
    const appliance = await startAppliance(bench.data);
    try {
      if (values.peers === true) keep('peers', 'the other', await peers(bench, appliance.url));
      else await measureLimits(bench, appliance, ingested);
    } finally {
      await appliance.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isWanted(name: string): boolean {
  return values.only === undefined || values.only === name;
}

async function growthOf(folder: string): Promise<Figure[]> {
  const options = { folder, rows: Number(values.rows ?? GROWTH_ROWS), note };
  return values.against === undefined
    ? growth(BUNDLE, null, options)
    : withBuilt(values.against, folder, (before) => growth(BUNDLE, before, options));
}

async function measureLimits(bench: Bench, appliance: Started, ingested: readonly Row[]): Promise<void> {
  const results = [...ingested];
  if (isWanted('page')) results.push(...(await pages(bench, appliance.url)));
  if (isWanted('period')) results.push(...(await periods(bench, appliance.url)));
  if (isWanted('light')) results.push(...(await light(bench, appliance.url)));
  print(results);
  const figures: Figure[] = [];
  const show = (before: string, measured: readonly Figure[]) => {
    note(figureTable(before, measured));
    figures.push(...measured);
  };
  if (isWanted('fair'))
    show(
      'a bare server',
      await fairness(appliance.url, bench.key, periodOf(join(bench.data, 'detections.db'))),
    );
  if (isWanted('stall'))
    show('a bare server', await withNewAppliance(bench, appliance, (fresh) => stalls(bench, fresh)));
  if (isWanted('follow')) show('plain', await following(bench, appliance));
  if (isWanted('console')) {
    await appliance.stop();
    show('alone', await consoles(bench));
  }
  recordWanted('limits', [...results.map(ofRow), ...figures.map(ofFigure)]);
}

/** @param before the name of the baseline */
function keep(name: GroupName, before: string, figures: readonly Figure[]): void {
  note(figureTable(before, figures));
  recordWanted(name, figures.map(ofFigure));
}

function recordWanted(name: GroupName, figures: Parameters<typeof record>[2]): void {
  if (values.record !== true) return;
  const options = process.argv.slice(2).join(' ');
  record(name, `npm run bench -- ${options}`.replace(/( --)? --record/, ''), figures);
}

/** Measures on a new appliance, so that memory of other measurements does not count. */
async function withNewAppliance<Result>(
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
