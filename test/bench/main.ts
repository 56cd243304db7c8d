/**
 * `npm run bench`: pages against the least that can serve them, how long commands and starts take, a revocation and the
 * console's overview beside an ingest, exports in another shape, and what the copy costs. Only ratios are
 * comparable: machines differ, and so does one machine from minute to minute.
 *
 * | option | meaning |
 * |---|---|
 * | `--rows N`, `--rounds N` | 300,000 rows and 3 rounds unless given |
 * | `--only page`, `start`, `beside`, `mapped`, `copy` | only this part |
 * | `--against COMMIT` | compares with an earlier version of the program instead |
 * | `--growth` | the cost of millions of rows, see growth.ts; with `--against` also of the earlier version |
 * | `--peers` | compares with nginx, see peers.ts |
 * | `--record` | records the figures of one of the last three, or of `--only copy`, for the documents |
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { against, withBuilt } from './against.ts';
import { besideIngest } from './beside-ingest.ts';
import { type Bench, type Figure, figureTable, timesAsGood } from './common.ts';
import { copies } from './copies.ts';
import { growth } from './growth.ts';
import { mapped } from './mapped.ts';
import { type GroupName, MEASURED, type MeasuredGroup } from './measured.ts';
import { peers, startBare, startNginx } from './peers.ts';
import { BUNDLE } from './program.ts';
import { starts } from './start.ts';

const OPTIONS = {
  rows: { type: 'string' },
  rounds: { type: 'string', default: '3' },
  only: { type: 'string' },
  against: { type: 'string' },
  growth: { type: 'boolean' },
  peers: { type: 'boolean' },
  record: { type: 'boolean' },
} as const;

const ROWS = 300_000;
/** Of a file. */
const GROWTH_ROWS = 2_000_000;

/** By name: what it is compared with, and what measures it. */
const PARTS: Readonly<Record<string, readonly [before: string, (bench: Bench) => Promise<Figure[]>]>> = {
  page: ['the other', (bench) => peers(bench, startBare)],
  start: ['bare Node', starts],
  beside: ['at rest', besideIngest],
  mapped: ['in our own form', mapped],
  copy: ['without a copy', copies],
};

const { values } = parseArgs({ options: OPTIONS });
const MACHINE = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`;

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'wirewatch-bench-'));
  const bench = { folder, rows: Number(values.rows ?? ROWS), rounds: Number(values.rounds) };
  try {
    note(MACHINE);
    if (values.growth === true) return keep('growth', values.against ?? '', await growthOf(folder));
    if (values.against !== undefined)
      return keep('earlier', values.against, await against(values.against, bench));
    if (values.peers === true) return keep('peers', 'the other', await peers(bench, startNginx));
    for (const [name, [before, measure]] of Object.entries(PARTS)) {
      if ((values.only ?? name) !== name) continue;
      const own = join(folder, name);
      mkdirSync(own);
      const figures = await measure({ ...bench, folder: own });
      if (values.only === 'copy') return keep('copy', before, figures);
      note(figureTable(before, figures));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function growthOf(folder: string): Promise<Figure[]> {
  const options = { folder, rows: Number(values.rows ?? GROWTH_ROWS), note };
  return values.against === undefined
    ? growth(BUNDLE, null, options)
    : withBuilt(values.against, folder, (before) => growth(BUNDLE, before, options));
}

/** Shows figures, and with `--record` replaces those of the group. @param before the name of the baseline */
function keep(name: GroupName, before: string, figures: readonly Figure[]): void {
  note(figureTable(before, figures));
  if (values.record !== true) return;
  const group: MeasuredGroup = {
    how: `npm run bench -- ${process.argv.slice(2).join(' ')}`.replace(/( --)? --record/, ''),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    day: new Date().toISOString().slice(0, 10),
    machine: MACHINE,
    figures: figures.map(({ isCost, ...figure }) => ({
      ...figure,
      ratio: timesAsGood({ ...figure, isCost: isCost === true }),
    })),
  };
  const path = join(import.meta.dirname, 'measured.json');
  writeFileSync(path, `${JSON.stringify({ ...MEASURED, [name]: group }, null, 2)}\n`);
}

function note(text: string): void {
  process.stdout.write(`${text}\n`);
}

await main();
