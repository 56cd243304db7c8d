/** `npm run torture -- [--only PART,…] [--seed N] [--share X]`: runs every part in turn, for hours. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { damage } from './damage.ts';
import { faults } from './faults.ts';
import { histories } from './histories.ts';
import { http } from './http.ts';
import { kill } from './kill.ts';
import { machines } from './machines.ts';
import { type Part, Tally } from './part.ts';
import { planted } from './planted.ts';
import { power } from './power.ts';
import { soak } from './soak.ts';

/** In the order in which they run; each is in a file of its name. */
const PARTS: readonly Part[] = [kill, faults, power, histories, machines, damage, http, soak, planted];

function usage(): string {
  const lines = PARTS.map(({ name, about }) => `  ${name.padEnd(12)}${about}`);
  return `Tries to make the program lose data or serve wrong data. Exit code 1: it succeeded.

  npm run torture -- [--only PART,PART] [--seed N] [--share X]

  --only    these parts; by default all, which takes hours
  --seed    repeats a run; by default a random one, which is printed
  --share   how much of each part to run: 0.01 is a hundredth; 1 by default

With TMPDIR=/dev/shm, in memory, it is much faster: it syncs thousands of files.

To repeat one failure of kill, faults, histories or machines, set TORTURE_CASE as the failure says: it is a list.

${lines.join('\n')}
`;
}

/** @returns null for --help; @throws Error for an unknown option or value */
function readOptions() {
  const text = { type: 'string' } as const;
  const options = { only: text, seed: text, share: text, help: { type: 'boolean' } } as const;
  const { values } = parseArgs({ options });
  if (values.help === true) return null;
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error('--seed: expected a whole number');
  const share = Number(values.share ?? 1);
  if (!(share > 0 && share <= 1)) throw new Error('--share: expected a number above 0 and at most 1');
  const names = PARTS.map(({ name }) => name);
  const only = values.only?.split(',') ?? names;
  if (!only.every((name) => names.includes(name)))
    throw new Error(`--only: expected some of ${names.join(', ')}`);
  return { parts: PARTS.filter(({ name }) => only.includes(name)), seed, share };
}

/** @returns whether everything held */
async function torture(part: Part, seed: number, share: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), `wirewatch-${part.name}-`));
  const began = performance.now();
  const onProgress = (progress: string) => console.error(`${part.name}: ${progress}`);
  const tally = new Tally();
  const { figures, failures } = tally;
  await part
    .run({ seed, share, folder, tally, onProgress })
    .catch((error: unknown) => failures.push(inspect(error)));
  const minutes = ((performance.now() - began) / 60_000).toFixed(1);
  const result = failures.length > 0 ? 'BROKEN' : 'held';
  console.log(`${part.name}: ${result}, seed ${seed}, ${minutes} minutes`);
  for (const [what, figure] of Object.entries(figures)) console.log(`  ${what}: ${figure}`);
  for (const failure of failures) console.log(`  WRONG: ${failure}`);
  if (failures.length > 0) console.log(`  files for inspection: ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
  return result === 'held';
}

function wantedOrExit() {
  try {
    return readOptions();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${usage()}`);
    process.exit(2);
  }
}

const wanted = wantedOrExit();
if (wanted === null) console.log(usage());
else
  for (const part of wanted.parts)
    if (!(await torture(part, wanted.seed, wanted.share))) process.exitCode = 1;
