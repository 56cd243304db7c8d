/** `npm run fuzz -- --seconds 60 --seed N`: the same as test/fuzz.test.ts, for as long as one likes. */
import { parseArgs } from 'node:util';
import { type Campaign, runCampaign } from './campaign.ts';
import { startTarget } from './target.ts';

const USAGE = `Starts the program and sends it made-up requests, well formed and not. Exit code 1: an answer was wrong.

  npm run fuzz -- [--seconds N] [--seed TEXT] [--connection N]

  --seconds N     for how long; 60 unless told otherwise
  --seed TEXT     the same requests again; unless told otherwise a random one, which is printed
  --connection N  of that seed only the connection with this number, as a failure names it
`;

const PROGRESS_EVERY_MS = 10_000;

interface Wanted {
  readonly seconds: number;
  readonly seed: string;
  readonly connection: number | null;
}

/** @returns null when the usage is asked for; @throws Error for what is no such option or no such value */
function readOptions(args: string[]): Wanted | null {
  const text = { type: 'string' } as const;
  const options = { seconds: text, seed: text, connection: text, help: { type: 'boolean' } } as const;
  const { values } = parseArgs({ args, options });
  if (values.help === true) return null;
  const seconds = Number(values.seconds ?? 60);
  if (!(seconds > 0 && Number.isFinite(seconds))) throw new Error('--seconds: expected a number above 0');
  const connection = values.connection === undefined ? null : Number(values.connection);
  if (connection !== null && !(Number.isInteger(connection) && connection >= 0)) {
    throw new Error('--connection: expected the number of a connection, from 0');
  }
  if (connection !== null && values.seed === undefined) throw new Error('--connection: name its --seed, too');
  return { seconds, seed: values.seed ?? String(Math.floor(Math.random() * 1_000_000)), connection };
}

/** @returns whether all answers were right */
async function fuzz({ seconds, seed, connection }: Wanted): Promise<boolean> {
  // Before anything is sent: a run that does not come to its end can be done again, too.
  console.error(connection === null ? `seed ${seed}, ${seconds} seconds` : `seed ${seed}`);
  const { appliance, facts } = await startTarget();
  try {
    const endMs = performance.now() + seconds * 1000;
    let toldMs = performance.now();
    const timed: Campaign['goesOn'] = (connections) => {
      const nowMs = performance.now();
      if (nowMs - toldMs > PROGRESS_EVERY_MS) {
        console.error(`${connections} connections`);
        toldMs = nowMs;
      }
      return nowMs < endMs;
    };
    const only = (connections: number) => connections === connection;
    const goesOn = connection === null ? timed : only;
    const outcome = await runCampaign({ facts, seed, first: connection ?? 0, goesOn });
    const faults = appliance.serving().log.filter(({ level }) => level === 'error' || level === 'fatal');
    for (const failure of outcome.failures) console.log(`WRONG: ${failure}`);
    for (const fault of faults) console.log(`LOGGED: ${JSON.stringify(fault)}`);
    const statuses = [...outcome.statuses].sort(([a], [b]) => a - b);
    const answers = statuses.reduce((sum, [, count]) => sum + count, 0);
    const counted = statuses.map(([status, count]) => `${status}: ${count}`).join(', ');
    console.log(`seed ${seed}: ${outcome.connections} connections, ${answers} answers (${counted})`);
    const isRight = outcome.failures.length + faults.length === 0;
    console.log(isRight ? 'every answer was as documented' : 'see above for what was wrong');
    return isRight;
  } finally {
    await appliance.stop();
  }
}

function wantedOrExit(): Wanted | null {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    process.exit(2);
  }
}

const wanted = wantedOrExit();
if (wanted === null) console.log(USAGE);
else if (!(await fuzz(wanted))) process.exitCode = 1;
