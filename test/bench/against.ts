/**
 * `npm run bench -- --against COMMIT`: compares this program with an earlier version, built from its commit in its own
 * worktree. Both read the same exports and serve the same requests, in turn, over HTTP and with their own commands.
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
import { dropped, generated, prepareAccess } from './ingest.ts';
import { authorization, type PathOf, runLoad, walkOf } from './load.ts';
import { BUNDLE, command, type Started, startAppliance } from './program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MANY = Array.from({ length: 40 }, (_, index) => 7001 + index);
const PAGE_REQUESTS = 400;
/** More meaningful than the rate if the machine is also used otherwise. */
const PROCESSOR = 'processor time of the appliance for it';

/** One of the two versions, with a data folder for each of the two data sets. */
type Candidate = ReturnType<typeof candidate>;

export async function against(commit: string, { folder, rows, rounds }: Bench): Promise<Figure[]> {
  return await withBuilt(commit, folder, async (bundle) => {
    const both = [candidate(join(folder, 'before'), bundle), candidate(join(folder, 'now'), BUNDLE)] as const;
    const few = generated(join(folder, 'few'), rows, SUBSCRIPTIONS);
    const many = generated(join(folder, 'many'), rows, MANY);
    const read = await inTurn(both, { rounds, warmUps: 0 }, (one) => ingest(one, 'few', few, rows));
    for (const one of both) await ingest(one, 'many', many, rows);
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
  const prepared = (name: string, subscriptions: readonly number[]) => {
    // Without detections, to copy.
    const empty = join(folder, `${name}-empty`);
    return { folder: join(folder, name), empty, key: prepareAccess(empty, subscriptions, { bundle }) };
  };
  return { bundle, few: prepared('few', SUBSCRIPTIONS), many: prepared('many', MANY) };
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

async function ingest({ bundle, ...sets }: Candidate, set: 'few' | 'many', file: string, rows: number) {
  const { folder, empty } = sets[set];
  rmSync(folder, { recursive: true, force: true });
  cpSync(empty, folder, { recursive: true });
  await using appliance = await startAppliance(folder, { bundle });
  return await measured(appliance, 1, async () => rows / (await dropped(join(folder, 'drop'), file)));
}

async function served(both: readonly [Candidate, Candidate], rounds: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  const compare = async (what: string, set: 'few' | 'many', path: PathOf) => {
    await using stops = new AsyncDisposableStack();
    const sides: (Started & { readonly headers: Record<string, string> })[] = [];
    for (const { bundle, [set]: data } of both) {
      const appliance = stops.use(await startAppliance(data.folder, { bundle }));
      sides.push({ ...appliance, headers: authorization(data.key) });
    }
    const load = { requests: PAGE_REQUESTS, path };
    const measure = (side: (typeof sides)[number]) =>
      measured(side, PAGE_REQUESTS, () => runLoad({ ...load, url: side.url, headers: side.headers }));
    figures.push(...compared(what, 'pages/s', await inTurn(sides, { rounds }, measure)));
  };
  const page = 'stream page of 1,000 rows';
  const walks = SUBSCRIPTIONS.map((id) => walkOf(`&subscription_id=${id}`));
  const oneEach: PathOf = (connection, answer) =>
    walks[connection % walks.length]?.(connection, answer) ?? '';
  await compare(`${page}, one stream of 40 interleaved`, 'many', oneEach);
  await compare(`${page}, one stream of 4 interleaved`, 'few', walks[0] ?? oneEach);
  await compare(`${page}, four streams`, 'few', walkOf());
  const { first, last } = rangeOf(join(both[1].few.folder, 'detections.db'));
  const [from, to] = [first, last + 1].map((second) => new Date(second * 1000).toISOString());
  const period = `/v1/detections?from=${from}&to=${to}&limit=1000`;
  const ofOne = `${period}&subscription_id=${SUBSCRIPTIONS[0]}&content_type=text`;
  await compare('period page of 1,000 rows, one stream', 'few', () => ofOne);
  await compare('period page of 200 rows, four streams', 'few', () => period);
  return figures;
}

function sizes(both: readonly [Candidate, Candidate], rows: number): Figure[] {
  const [before, now = 0] = both.map(({ few }) => bytesOf([join(few.folder, 'detections.db')]) / rows);
  const [earlierLog, log = 0] = both.map(({ few }) => bytesOf(filesBelow(join(few.folder, 'log'))) / rows);
  return [
    cost('detections.db for each new detection', 'bytes', now, before),
    cost('the log for each new detection', 'bytes', log, earlierLog),
  ];
}

async function rebuilt({ bundle, few }: Candidate, rows: number): Promise<Figure> {
  rmSync(join(few.folder, 'detections.db'));
  const nothing = ['--to', '2000-01-01T00:00:00Z', '--data', few.folder, '--json'];
  const seconds = await secondsOf(() => command(['ingest', 'replay', ...nothing], { bundle }));
  return { what: 'detections.db made anew from the log', unit: 'rows/s', before: null, now: rows / seconds };
}
