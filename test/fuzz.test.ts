/** Requests of every kind, well formed and not, against the running program: none is a fault, each answer documented. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { runCampaign } from './fuzz/campaign.ts';
import { startTarget } from './fuzz/target.ts';

const SEED = 'wirewatch';
const CONNECTIONS = 1200;

let target: Awaited<ReturnType<typeof startTarget>>;
before(async () => {
  target = await startTarget();
});
after(() => target?.appliance.stop());

test('no made-up request is a fault, and every answer is as the document says', async () => {
  const { appliance, facts } = target;
  const { statuses, failures } = await runCampaign({
    facts,
    seed: SEED,
    goesOn: (connections) => connections < CONNECTIONS,
  });
  assert.deepEqual(failures, []);
  const faults = appliance.serving().log.filter(({ level }) => level === 'error' || level === 'fatal');
  assert.deepEqual(faults, []);
  // What it reached: otherwise it would say little.
  for (const status of [200, 304, 400, 401, 403, 404, 405, 413, 431]) {
    assert.ok((statuses.get(status) ?? 0) > 0, `no ${status} among ${JSON.stringify([...statuses])}`);
  }
  assert.equal((await appliance.get('/v1/me')).status, 200, 'it still answers');
});
