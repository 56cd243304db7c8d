/** Requests of every kind, well formed and not, against the running program: none is a fault, each answer documented. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runCampaign } from '../fuzz/campaign.ts';
import { startTarget } from '../fuzz/target.ts';

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

/** As `npm run fuzz` does. */
function fuzz(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const main = join(import.meta.dirname, '..', 'fuzz', 'main.ts');
  return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
}

test('npm run fuzz sends requests for a time, from a seed, and says what came of it', () => {
  const { status, stdout, stderr } = fuzz('--seconds', '2', '--seed', '7');
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /^seed 7: [1-9]\d* connections, [1-9]\d* answers \(200: \d+, .*404: \d+/);
  assert.match(stdout, /\nevery answer was as documented\n$/);
  assert.match(stderr, /^seed 7, 2 seconds\n/);
  const one = fuzz('--seed', '7', '--connection', '3');
  assert.equal(one.status, 0, one.stdout + one.stderr);
  assert.match(one.stdout, /^seed 7: 1 connections, /);
});

test('npm run fuzz explains itself when it is used wrongly', () => {
  for (const args of [['--seconds', 'x'], ['--seconds', '0'], ['--colour'], ['--connection', '3']]) {
    const { status, stdout, stderr } = fuzz(...args);
    assert.deepEqual([status, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /--seconds N/);
  }
  assert.equal(fuzz('--help').status, 0);
});
