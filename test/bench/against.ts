/**
 * `npm run bench -- --against COMMIT`: compares this program with an earlier version, built from its commit in its own
 * worktree. Both read the same export and serve the same requests, in turn, over HTTP and with their own commands.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow } from '../support/test-folder.ts';
import {
  type Bench,
  bytesOf,
  cost,
  type Figure,
  inTurn,
  rangeOf,
  rate,
  SUBSCRIPTIONS,
  secondsOf,
} from './common.ts';
import { dropped, exportOf, prepareAccess } from './ingest.ts';
import { authorization, LOAD_REQUESTS, type PathOf, runLoad, walkOf } from './load.ts';
import { BUNDLE, command, type Started, startAppliance } from './program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** More meaningful than the rate if the machine is also used otherwise. */
const PROCESSOR = 'processor time of the appliance for it';

/** One of the two versions, with its data folder. */
type Candidate = ReturnType<typeof candidate>;

export async function against(commit: string, bench: Bench): Promise<Figure[]> {
  const { folder, rows, rounds } = bench;
  return await withBuilt(commit, folder, async (bundle) => {
    const both = [candidate(join(folder, 'before'), bundle), candidate(join(folder, 'now'), BUNDLE)] as const;
    const file = exportOf(bench);
    const read = await inTurn(both, { rounds, warmUps: 0 }, (one) => ingest(one, file, rows));
    return [
      ...compared('ingest, dropped to committed and archived', 'rows/s', read),
      ...(await served(both, rounds)),
      ...sizes(both, rows),
      await rebuilt(both[1], rows),
    ];
  });
}

/** Builds an earlier version of the program in its own worktree. @param use receives its bundle */
export async function withBuilt<Result>(
  commit: string,
  folder: string,
  use: (bundle: string) => Promise<Result>,
): Promise<Result> {
  const worktree = join(folder, 'worktree');
  execFileSync('git', ['worktree', 'add', '--quiet', '--detach', worktree, commit], { cwd: ROOT });
  try {
    const lock = 'package-lock.json';
    if (readFileSync(join(ROOT, lock), 'utf8') === readFileSync(join(worktree, lock), 'utf8'))
      symlinkSync(join(ROOT, 'node_modules'), join(worktree, 'node_modules'));
    // If the lockfiles differ, it installs its modules first.
    execFileSync(process.execPath, [join('build', 'setup.cjs')], { cwd: worktree, stdio: 'inherit' });
    return await use(join(worktree, 'dist', 'main.cjs'));
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', worktree], { cwd: ROOT });
  }
}

function candidate(folder: string, bundle: string) {
  // Without detections, to copy.
  const empty = join(folder, 'empty');
  return { bundle, data: join(folder, 'data'), empty, key: prepareAccess(empty, SUBSCRIPTIONS, { bundle }) };
}

/** @returns what `work` does in a second, and the processor time of the appliance meanwhile, by `times` */
async function measured({ cpuMs }: Started, times: number, work: () => Promise<number>) {
  const startCpuMs = cpuMs();
  const perSecond = await work();
  return { perSecond, cpuMs: (cpuMs() - startCpuMs) / times };
}

type Measured = Awaited<ReturnType<typeof measured>>;

function compared(what: string, unit: string, sides: readonly (readonly Measured[])[]): Figure[] {
  const of = (name: keyof Measured) => sides.map((list) => list.map((each) => each[name]));
  return [rate(what, unit, of('perSecond')), { ...rate(PROCESSOR, 'ms', of('cpuMs')), isCost: true }];
}

async function ingest({ bundle, data, empty }: Candidate, file: string, rows: number) {
  rmSync(data, { recursive: true, force: true });
  cpSync(empty, data, { recursive: true });
  await using appliance = await startAppliance(data, { bundle });
  return await measured(appliance, 1, async () => rows / (await dropped(join(data, 'drop'), file)));
}

async function served(both: readonly [Candidate, Candidate], rounds: number): Promise<Figure[]> {
  await using stops = new AsyncDisposableStack();
  const sides: (Started & { readonly headers: Record<string, string> })[] = [];
  for (const { bundle, data, key } of both) {
    const appliance = stops.use(await startAppliance(data, { bundle }));
    sides.push({ ...appliance, headers: authorization(key) });
  }
  const { first, last } = rangeOf(join(both[1].data, 'detections.db'));
  const [from, to] = [first, last + 1].map((second) => new Date(second * 1000).toISOString());
  const period = `/v1/detections?from=${from}&to=${to}&limit=1000`;
  const [own] = SUBSCRIPTIONS;
  const pages: Readonly<Record<string, PathOf>> = {
    'stream page of 1,000 rows, one stream of 4 interleaved': walkOf(`&subscription_id=${own}`),
    'stream page of 1,000 rows, four streams': walkOf(),
    'period page of 1,000 rows, one stream': () => `${period}&subscription_id=${own}&content_type=text`,
    'period page of 200 rows, four streams': () => period,
  };
  const figures: Figure[] = [];
  for (const [what, path] of Object.entries(pages)) {
    const measure = (side: (typeof sides)[number]) =>
      measured(side, LOAD_REQUESTS, () => runLoad({ ...side, path }));
    figures.push(...compared(what, 'pages/s', await inTurn(sides, { rounds }, measure)));
  }
  return figures;
}

function sizes(both: readonly [Candidate, Candidate], rows: number): Figure[] {
  const [before, now = 0] = both.map(({ data }) => bytesOf([join(data, 'detections.db')]) / rows);
  const [earlierLog, log = 0] = both.map(({ data }) => bytesOf(filesBelow(join(data, 'log'))) / rows);
  return [
    cost('detections.db for each new detection', 'bytes', now, before),
    cost('the log for each new detection', 'bytes', log, earlierLog),
  ];
}

async function rebuilt({ bundle, data }: Candidate, rows: number): Promise<Figure> {
  rmSync(join(data, 'detections.db'));
  const nothing = ['--to', '2000-01-01T00:00:00Z', '--data', data, '--json'];
  const seconds = await secondsOf(() => command(['ingest', 'replay', ...nothing], { bundle }));
  return { what: 'detections.db made anew from the log', unit: 'rows/s', before: null, now: rows / seconds };
}
