/** `npm run fuzz -- --seconds 60 --seed N`: the same as test/fuzz.test.ts, for as long as one likes. */
import { parseArgs } from 'node:util';
import { runCampaign } from './campaign.ts';
import { startTarget } from './target.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } },
});
const seed = values.seed ?? String(Math.floor(Math.random() * 1_000_000));
const { appliance, facts } = await startTarget();
try {
  const endMs = performance.now() + Number(values.seconds) * 1000;
  const { connections, statuses, failures } = await runCampaign({
    facts,
    seed,
    goesOn: () => performance.now() < endMs,
  });
  const faults = appliance.serving().log.filter(({ level }) => level === 'error' || level === 'fatal');
  for (const failure of failures) console.log(failure);
  for (const fault of faults) console.log(JSON.stringify(fault));
  const counted = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  console.log(`seed ${seed}, ${connections} connections; ${counted.join(', ')}`);
  if (failures.length + faults.length > 0) process.exitCode = 1;
} finally {
  await appliance.stop();
}
