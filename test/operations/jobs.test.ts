/** Which requests for a long operation wait for one that runs, and which are never kept waiting. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { openAccess } from '../../src/auth/open-access.ts';
import { NO_COUNTS } from '../../src/ingest/apply/apply-rows.ts';
import type { IngestRequest } from '../../src/ingest/requests/requests.ts';
import { testOperations } from '../support/live.ts';
import { testFolder } from '../support/test-folder.ts';

const BY = { actor: 'ada' };
const COUNTS = { files: 0, rows: 0, ...NO_COUNTS, left_out: 0, unreadable: [] };

/** An installation whose ingest thread answers replays once they are served. */
function installation() {
  const dataFolder = testFolder();
  {
    using access = openAccess(dataFolder, { create: true, operation: { kind: 'command' } });
    addAccount(access, { id: 'acme', name: 'Acme' }, 1);
  }
  const asked: IngestRequest[] = [];
  const served = Promise.withResolvers<void>();
  const operations = testOperations(dataFolder, {
    ingest: {
      async ask(request) {
        asked.push(request);
        await served.promise;
        return { ok: true, replay: COUNTS };
      },
      wake() {},
      async promote() {},
    },
  });
  return { operations, asked, served };
}

test('a replay of another period, or after a licence changed, does not pass for one that runs', async () => {
  const { operations, asked, served } = installation();
  const run = (path: string, given: object) => operations.run({ path, given, way: 'command', by: BY });
  const replay = (given: object) => run('ingest-replay', given);
  const week = { from: '2026-11-01T00:00:00Z', to: '2026-11-08T00:00:00Z' };
  const replays = [replay(week), replay({}), replay({ from: week.from }), replay(week), replay({})];
  // It comes after them.
  assert.equal((await run('account-set', { id: 'acme', print_metadata: true })).status, 200);
  replays.push(replay({}), replay({}));
  await operations.view({ path: 'jobs', query: '', mayAct: false });
  served.resolve();
  for (const { status, body } of await Promise.all(replays)) assert.equal(status, 200, body);
  const [from, to, end] = [Date.parse(week.from), Date.parse(week.to), Number.MAX_SAFE_INTEGER];
  const spans = asked.map((request) => request.kind === 'replay' && `${request.from} to ${request.to}`);
  assert.deepEqual(spans, [`${from} to ${to}`, `0 to ${end}`, `${from} to ${end}`, `0 to ${end}`]);
});

test('whatever consoles and scripts wait for, a command is done', async () => {
  const { operations, served } = installation();
  const suspend = (way: 'api' | 'command') =>
    operations.run({ path: 'account-suspend', given: { id: 'acme' }, way, by: BY });
  const replay = () => operations.run({ path: 'ingest-replay', given: {}, way: 'api', by: BY });
  const waiting = Array.from({ length: 100 }, replay);
  assert.equal((await suspend('api')).status, 503);
  assert.equal((await suspend('command')).status, 200);
  served.resolve();
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);
});
