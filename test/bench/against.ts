/**
 * `npm run bench -- --against COMMIT`: compares this program with an earlier version, built from its commit in its own
 * worktree. Both read the same exports and serve the same requests, in turn, over HTTP and with their own commands.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONNECTIONS, type Figure, median, periodOf, SUBSCRIPTIONS } from './common.ts';
import { BESIDE, healthBeside, pageOf } from './fairness.ts';
import { dropped, prepareAccess } from './ingest.ts';
import { runLoad } from './load.ts';
import { walkOf } from './pages.ts';
import { BUNDLE, command, commandOf, type Started, startAppliance } from './program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MANY = Array.from({ length: 40 }, (_, index) => 7001 + index);
const PAGE_REQUESTS = 400;
/** More meaningful than the rate if the machine is also used otherwise. */
const PROCESSOR = 'processor time of the appliance for it';

/** One of the two versions, with a data folder for each of the two data sets. */
interface Candidate {
  readonly bundle: string;
  readonly folder: string;
  readonly few: Data;
  readonly many: Data;
}

interface Data {
  readonly folder: string;
  /** A data folder without detections, to copy. */
  readonly empty: string;
  readonly key: string;
}

export async function against(
  commit: string,
  { folder, rows, rounds }: { folder: string; rows: number; rounds: number },
): Promise<Figure[]> {
  return await withBuilt(commit, folder, async (bundle) => {
    const before = candidate(join(folder, 'before'), bundle);
    const now = candidate(join(folder, 'now'), BUNDLE);
    generate(join(folder, 'few'), SUBSCRIPTIONS, rows);
    generate(join(folder, 'many'), MANY, rows);
    return [
      ...(await ingested(before, now, { folder, rows, rounds })),
      ...(await served(before, now, rounds)),
      ...sizes(before, now, rows),
      rebuilt(now, rows),
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
    return await use(build(worktree));
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', worktree], { cwd: ROOT });
  }
}

/** @returns the bundle */
function build(worktree: string): string {
  const lock = 'package-lock.json';
  if (readFileSync(join(ROOT, lock), 'utf8') === readFileSync(join(worktree, lock), 'utf8'))
    symlinkSync(join(ROOT, 'node_modules'), join(worktree, 'node_modules'));
  // If the lockfiles differ, install its modules first.
  execFileSync(process.execPath, [join('build', 'setup.cjs')], { cwd: worktree, stdio: 'inherit' });
  return join(worktree, 'dist', 'main.cjs');
}

function generate(out: string, subscriptions: readonly number[], rows: number): void {
  const ids = ['--subscriptions', subscriptions.join(',')];
  command('generate', '--out', out, '--export', 'newswire', '--rows', `${rows}`, ...ids);
}

function candidate(folder: string, bundle: string): Candidate {
  const prepared = (name: string, subscriptions: readonly number[]): Data => {
    const empty = join(folder, `${name}-empty`);
    mkdirSync(folder, { recursive: true });
    return { folder: join(folder, name), empty, key: prepareAccess(empty, subscriptions, bundle) };
  };
  return { bundle, folder, few: prepared('few', SUBSCRIPTIONS), many: prepared('many', MANY) };
}

async function ingested(
  before: Candidate,
  now: Candidate,
  { folder, rows, rounds }: { folder: string; rows: number; rounds: number },
): Promise<Figure[]> {
  const measured = new Map<Candidate, Ingested[]>([
    [before, []],
    [now, []],
  ]);
  for (let round = 0; round < rounds; round += 1)
    for (const [one, list] of measured) list.push(await ingest(one, one.few, join(folder, 'few')));
  for (const one of [before, now]) await ingest(one, one.many, join(folder, 'many'));
  const of = (one: Candidate, figure: keyof Ingested) =>
    median((measured.get(one) ?? []).map((round) => round[figure]));
  return [
    {
      what: 'ingest, dropped to committed and archived',
      unit: 'rows/s',
      before: rows / of(before, 'seconds'),
      now: rows / of(now, 'seconds'),
    },
    {
      what: PROCESSOR,
      unit: 'ms',
      before: of(before, 'cpuMs'),
      now: of(now, 'cpuMs'),
      isCost: true,
    },
  ];
}

interface Ingested {
  readonly seconds: number;
  readonly cpuMs: number;
}

async function ingest({ bundle }: Candidate, { folder, empty }: Data, exports: string): Promise<Ingested> {
  rmSync(folder, { recursive: true, force: true });
  cpSync(empty, folder, { recursive: true });
  const appliance = await startAppliance(folder, bundle);
  const [file = ''] = readdirSync(exports);
  try {
    const startCpuMs = appliance.cpuMs() ?? 0;
    const seconds = await dropped(join(folder, 'drop'), exports, file);
    return { seconds, cpuMs: (appliance.cpuMs() ?? 0) - startCpuMs };
  } finally {
    await appliance.stop();
  }
}

async function served(before: Candidate, now: Candidate, rounds: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  const compare = async (what: string, pick: (one: Candidate) => Data, path: PathOf) => {
    const started: [Started, Data][] = [];
    try {
      for (const one of [before, now])
        started.push([await startAppliance(pick(one).folder, one.bundle), pick(one)]);
      const rates: number[][] = [[], []];
      const costs: number[][] = [[], []];
      // The first round warms up.
      for (let round = 0; round <= rounds; round += 1)
        for (const [which, [{ url, cpuMs }, { key }]] of started.entries()) {
          const headers = { authorization: `Bearer ${key}` };
          const load = { url, connections: CONNECTIONS, requests: PAGE_REQUESTS, headers, path };
          const startCpuMs = cpuMs() ?? 0;
          const { requests_per_second: rate } = await runLoad(load);
          if (round === 0) continue;
          rates[which]?.push(rate);
          costs[which]?.push(((cpuMs() ?? 0) - startCpuMs) / PAGE_REQUESTS);
        }
      const [rate = [], cost = []] = [rates, costs].map((measured) => measured.map(median));
      figures.push(
        { what, unit: 'pages/s', before: rate[0] ?? 0, now: rate[1] ?? 0 },
        { what: PROCESSOR, unit: 'ms', before: cost[0] ?? 0, now: cost[1] ?? 0, isCost: true },
      );
    } finally {
      for (const [appliance] of started) await appliance.stop();
    }
  };
  const walk = walkOf(1000);
  const own = `&subscription_id=${SUBSCRIPTIONS[0]}`;
  const period = periodOf(join(now.few.folder, 'detections.db'));
  const page = 'stream page of 1,000 rows';
  const walks = SUBSCRIPTIONS.map((id) => walk(`&subscription_id=${id}`));
  const inTurn: PathOf = (connection, answer) => walks[connection % walks.length]?.(connection, answer) ?? '';
  await compare(`${page}, one stream of 40 interleaved`, ({ many }) => many, inTurn);
  await compare(`${page}, one stream of 4 interleaved`, ({ few }) => few, walk(own));
  await compare(`${page}, four streams`, ({ few }) => few, walk(''));
  await compare(
    'period page of 1,000 rows, one stream',
    ({ few }) => few,
    () => pageOf(period),
  );
  await compare(
    'period page of 200 rows, four streams',
    ({ few }) => few,
    () => period,
  );
  return [...figures, await checkedBeside(before, now, pageOf(period))];
}

async function checkedBeside(before: Candidate, now: Candidate, page: string): Promise<Figure> {
  const measured: number[] = [];
  for (const { few, bundle } of [before, now]) {
    const appliance = await startAppliance(few.folder, bundle);
    const [health] = await healthBeside(appliance.url, few.key, page).finally(appliance.stop);
    measured.push(health);
  }
  const [earlier = 0, current = 0] = measured;
  return { what: BESIDE, unit: 'ms', before: earlier, now: current, isCost: true };
}

type PathOf = (connection: number, answer: Buffer | null) => string;

function sizes(before: Candidate, now: Candidate, rows: number): Figure[] {
  const database = ({ few }: Candidate) => statSync(join(few.folder, 'detections.db')).size / rows;
  const log = ({ few }: Candidate) =>
    existsSync(join(few.folder, 'log')) ? sizeOf(join(few.folder, 'log')) / rows : null;
  return [
    {
      what: 'detections.db for each new detection',
      unit: 'bytes',
      before: database(before),
      now: database(now),
      isCost: true,
    },
    {
      what: 'the log for each new detection',
      unit: 'bytes',
      before: log(before),
      now: log(now) ?? 0,
      isCost: true,
    },
  ];
}

function sizeOf(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function rebuilt({ bundle, few }: Candidate, rows: number): Figure {
  rmSync(join(few.folder, 'detections.db'));
  const startMs = performance.now();
  commandOf(bundle, 'ingest', 'replay', '--to', '2000-01-01T00:00:00Z', '--data', few.folder, '--json');
  const seconds = (performance.now() - startMs) / 1000;
  return { what: 'detections.db made anew from the log', unit: 'rows/s', before: null, now: rows / seconds };
}
