/** `subscription remove` and `account remove`: their effects, and adding again. */
import assert from 'node:assert/strict';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Database, writing } from '../../src/store/database.ts';
import { openAccess } from '../support/access.ts';
import {
  type Appliance,
  addOtherAccount,
  type ChangesPage,
  createKey,
  showLogOfFailures,
  startAppliance,
} from '../support/appliance.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { changeDetections, countOf, reading } from '../support/database-content.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { openAlertsOf } from '../support/installation-state.ts';
import { failingCall } from '../support/preload.ts';
import { checkStreams } from '../support/streams.ts';
import { testFolder } from '../support/test-folder.ts';
import { until } from '../support/until.ts';

const CHANGES = '/v1/detections/changes';

const FIRST_AGAIN = `
  SELECT ordinal, min(stream_row.position) AS position FROM stream JOIN stream_row ON place >> 34 = ordinal
  WHERE subscription_id = 7001 AND content_type = 'text' AND removed = 0`;

/** The numbers of a subscription's detections and versions. */
function left(db: Database, subscription: number): number[] {
  const ofSubscription = `place >> 34 IN (SELECT ordinal FROM stream WHERE subscription_id = ${subscription})`;
  return ['detection', 'stream_row'].map((table) => countOf(db, `${table} WHERE ${ofSubscription}`));
}

describe('beside a running appliance', () => {
  let appliance: Appliance;
  let otherKey: string;
  showLogOfFailures(() => appliance?.serving());
  before(async () => {
    appliance = await startAppliance({ WIREWATCH_INGEST_QUIET_MS: '0' });
    otherKey = addOtherAccount(appliance.cli);
  });
  after(() => appliance?.stop());

  const detections = () => join(appliance.data, 'detections.db');

  const changes = (query: string, key: string): Promise<ChangesPage> =>
    appliance.read(`${CHANGES}?${query}`, key);

  async function apply(rows: readonly Row[]): Promise<void> {
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
  }

  const idsOf = ({ data }: ChangesPage) => data.map(({ id }) => id);
  const remove = (...args: string[]) => JSON.parse(appliance.cli([...args, '--yes', '--json']).stdout);

  test('a removed subscription is gone for clients and from the database, other cursors keep working, and it can be added again', async () => {
    const mine = newRow();
    const foreign = newRow({ subscription_id: 8001 });
    await apply([mine, newRow(), foreign, newRow({ subscription_id: 7002 })]);
    const last_scored_at = String(mine.last_scored_at).replace(':00Z', ':30Z');
    await apply([{ ...mine, strength_score: 99, last_scored_at }]);
    const since = `since=${new Date(Date.now() - 86_400_000).toISOString()}`;
    const own = await changes(since, appliance.key);
    assert.equal(own.data.length, 4);
    const other = await changes(since, otherKey);

    const removed = remove('subscription', 'remove', '7001');
    assert.deepEqual([removed.subscriptions, removed.detections, removed.versions], [[7001], 2, 3]);
    const others = await changes(since, appliance.key);
    assert.deepEqual([others.data.length, others.data[0]?.subscription_id], [1, 7002]);
    assert.equal(await appliance.detection(idOf(mine)), null);
    assert.equal((await appliance.get(`${CHANGES}?cursor=${own.next_cursor}`)).status, 200);
    reading(detections(), (db) => {
      checkStreams(db);
      assert.deepEqual(left(db, 7001), [0, 0]);
    });

    const highest = reading(detections(), (db) =>
      db.prepare<[], number>('SELECT max(last_position) FROM delivery').pluck().get(),
    );
    appliance.cli(['subscription', 'add', '7001', '--account', 'other']);
    const again = createKey(appliance.cli, 'other', '7001');
    assert.deepEqual((await changes(since, again)).data, []);
    const later = newRow({ subscription_id: 8001 });
    await apply([later, mine]);
    reading(detections(), (db) => {
      checkStreams(db);
      const first = db.prepare<[], { ordinal: number; position: number }>(FIRST_AGAIN).get();
      assert.ok((first?.position ?? 0) > (highest ?? 0), 'a position was used again');
      assert.equal(first?.ordinal, countOf(db, 'stream'), 'it must be the newest stream');
    });
    assert.deepEqual(idsOf(await changes(`cursor=${other.next_cursor}`, otherKey)), [idOf(later)]);
    const readAgain = await changes(since, again);
    assert.deepEqual([idsOf(readAgain), readAgain.data[0]?.version], [[idOf(mine)], 1]);
    const { files, created, left_out } = JSON.parse(appliance.cli(['ingest', 'replay', '--json']).stdout);
    assert.deepEqual([files, created], [3, 0], 'rows of the earlier subscription must not come back');
    assert.ok(left_out > 0);
    assert.ok(!(await openAlertsOf(appliance)).includes('rows skipped'));
  });

  test('a key left without subscriptions stays, is named, and reads an empty stream', async () => {
    const added = appliance.cli(['subscription', 'add', '7003', '--account', 'agency']);
    assert.equal(added.stderr, '', 'the number is new');
    const key = createKey(appliance.cli, 'agency', '7003');
    const id = key.split('_')[2];
    const { stdout } = appliance.cli(['subscription', 'remove', '7003', '--yes']);
    assert.match(stdout, new RegExp(`no subscription left to read: ${id}\\.`));
    assert.match(stdout, /Log and database no longer contain them\. Files in archive\/ still contain them/);
    const page = await changes(`since=${new Date().toISOString()}`, key);
    assert.deepEqual([page.data, page.has_more], [[], false]);
  });

  test('rows of a removed subscription do not reach the next owner of its number', async () => {
    const cli = (...args: string[]) => JSON.parse(appliance.cli([...args, '--json']).stdout);
    const row = () => newRow({ subscription_id: 7005 });
    const [failed, changed] = [nextWindowMs(), nextWindowMs()];
    const { number } = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([row()]));
    const own = [row(), newRow()];
    await appliance.dropped(fileName('newswire', failed), ndjson([...own, newRow({ strength_score: 101 })]));
    const { destination } = await appliance.dropped(fileName('newswire', changed), ndjson(own));
    appliance.cli(['subscription', 'add', '7005', '--account', 'agency']);
    assert.equal(remove('subscription', 'remove', '7005').detections, 0);
    appliance.cli(['subscription', 'add', '7005', '--account', 'other']);
    const key = createKey(appliance.cli, 'other', '7005');
    await appliance.serving().stop();
    const times = 'taken_at = taken_at + 86400000, finished_at = finished_at + 86400000';
    // The clock was ahead.
    changeDetections(appliance.data, `UPDATE ingest_file SET ${times} WHERE number = ${number}`);
    const access = openAccess(appliance.data);
    // It was set back.
    const back = 'UPDATE subscription SET created_at = created_at - 86400000 WHERE id = 7005';
    writing(access, () => access.prepare(back).run());
    access.close();
    await appliance.restart();
    writeFileSync(join(appliance.drop, 'failed', fileName('newswire', failed)), ndjson(own));
    appendFileSync(join(appliance.drop, String(destination)), ndjson([row()]));
    await appliance.processed(fileName('newswire', changed));
    const { outcome } = cli('window', 'reset', 'newswire', new Date(failed).toISOString());
    assert.equal(outcome, 'applied');
    cli('ingest', 'replay');
    const since = `since=${new Date(Date.now() - 86_400_000).toISOString()}`;
    assert.deepEqual((await changes(since, key)).data, []);
    const fresh = row();
    await apply([fresh]);
    cli('ingest', 'replay');
    assert.deepEqual(idsOf(await changes(since, key)), [idOf(fresh)]);
  });

  test('an account is removed with its keys, subscriptions and detections', async () => {
    appliance.cli(['account', 'add', 'brief', '--name', 'Brief']);
    appliance.cli(['subscription', 'add', '9001', '--account', 'brief']);
    appliance.cli(['subscription', 'add', '9002', '--account', 'brief']);
    const key = createKey(appliance.cli, 'brief', '9001,9002');
    const id = key.split('_')[2] ?? '';
    await apply([newRow({ subscription_id: 9001 }), newRow({ subscription_id: 9002 })]);
    const { account, subscriptions, keys, detections: deleted } = remove('account', 'remove', 'brief');
    assert.deepEqual([account, subscriptions, keys, deleted], ['brief', [9001, 9002], [id], 2]);
    assert.equal((await appliance.get('/v1/me', key)).status, 401);
    reading(join(appliance.data, 'access.db'), (db) => {
      for (const table of [
        "account WHERE id = 'brief'",
        "subscription WHERE account_id = 'brief'",
        `api_key WHERE id = '${id}'`,
        `api_key_subscription WHERE key_id = '${id}'`,
      ])
        assert.equal(countOf(db, table), 0, table);
      assert.equal(countOf(db, `ended_key WHERE id = '${id}'`), 1);
    });
    reading(detections(), (db) => {
      checkStreams(db);
      for (const subscription of [9001, 9002]) assert.deepEqual(left(db, subscription), [0, 0]);
    });
  });
});

test('while rows cannot be deleted from the log, the number stays taken, and an alert is open', {
  skip: NO_PRELOAD,
}, async () => {
  const failing = failingCall('rename', 'EACCES', /draft\/\d+\.zst$/, join(testFolder(), 'flag'));
  failing.begin();
  await using appliance = await startAppliance(failing.settings);
  await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
  const cli = (...args: string[]) => appliance.cli(args, { anyStatus: true });
  const remove = () => {
    const { stdout } = cli('subscription', 'remove', '7001', '--yes', '--json');
    return JSON.parse(stdout).left_in_log;
  };
  const isOpen = async () => (await openAlertsOf(appliance)).includes('removal incomplete');
  assert.match(remove(), /permission denied/);
  await until('the alert', isOpen);
  assert.match(cli('subscription', 'add', '7001', '--account', 'agency').stderr, /still being deleted/);
  failing.end();
  assert.equal(remove(), null);
  await until('its end', async () => !(await isOpen()));
  assert.equal(cli('subscription', 'add', '7001', '--account', 'agency').status, 0);
});
