/** `subscription remove` and `account remove`: what is gone, when, for whom, and what begins anew. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { removeSubscription as takeAway } from '../../src/auth/removal.ts';
import { confirm } from '../../src/cli/confirm.ts';
import { streamName } from '../../src/detection/content-type.ts';
import { listSegments } from '../../src/history/segment.ts';
import { lastPosition } from '../../src/ingest/apply/apply-rows.ts';
import {
  COUNT_DETECTIONS,
  DELETE_DETECTIONS,
  DELETE_RESCORED,
  DELETE_STREAM_ROWS,
  removeSubscription,
} from '../../src/ingest/apply/remove-rows.ts';
import { addRequest } from '../../src/ingest/requests/requests.ts';
import { readChangesPage } from '../../src/query/changes-page.ts';
import { type Database, openReader, writing } from '../../src/store/database.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { openAccess } from '../support/access.ts';
import { openAlertsOf } from '../support/alerts.ts';
import {
  type Appliance,
  createInstallation,
  createKey,
  type Detection,
  showLogOfFailures,
  startAppliance,
} from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { NO_FILTERS } from '../support/filters.ts';
import { createTestStore } from '../support/store.ts';
import { streamWriterOn } from '../support/stream-writer.ts';
import { checkStreams } from '../support/streams.ts';
import { until } from '../support/until.ts';

class Stopping extends Error {}

const CHANGES = '/v1/detections/changes';

interface Page {
  readonly data: readonly Detection[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** Use of a database of the data folder as it is. */
function looking<Result>(path: string, use: (db: Database) => Result): Result {
  const db = openReader(path);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

const countOf = (db: Database, table: string) =>
  db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;

const FIRST_AGAIN = `
  SELECT ordinal, min(stream_row.position) AS position FROM stream JOIN stream_row ON place >> 34 = ordinal
  WHERE subscription_id = 7001 AND content_type = 'text' AND removed = 0`;

/** Detections and versions of a subscription. */
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
    appliance.cli(['account', 'add', 'other', '--name', 'Other']);
    appliance.cli(['subscription', 'add', '8001', '--account', 'other']);
    otherKey = createKey(appliance.cli, 'other', '8001');
  });
  after(() => appliance?.stop());

  const detections = () => join(appliance.data, 'detections.db');

  async function changes(query: string, key: string): Promise<Page> {
    const answer = await appliance.get(`${CHANGES}?${query}`, key);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return JSON.parse(text);
  }

  async function apply(rows: readonly Row[]): Promise<void> {
    const line = await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
  }

  const remove = (...args: string[]) => JSON.parse(appliance.cli([...args, '--yes', '--json']).stdout);

  test('without a terminal and without --yes nothing is removed: exit code 2', () => {
    for (const args of [
      ['subscription', 'remove', '7001'],
      ['account', 'remove', 'agency'],
    ]) {
      const { status, stderr } = appliance.cli(args, { anyStatus: true });
      assert.equal(status, 2);
      assert.match(stderr, /permanently removes.*Not confirmed: add --yes/);
    }
    assert.equal(appliance.cli(['subscription', 'show', '7001']).status, 0);
    const { status, stderr } = appliance.cli(['subscription', 'remove', '4711', '--yes'], {
      anyStatus: true,
    });
    assert.equal(status, 1);
    assert.match(stderr, /subscription 4711 does not exist/);
  });

  test('a subscription is gone for its clients and from the database; cursors of others go on; it begins anew', async () => {
    const mine = newRow();
    const foreign = newRow({ subscription_id: 8001 });
    await apply([mine, foreign, newRow({ subscription_id: 7002 })]);
    await apply([
      { ...mine, strength_score: 99, last_scored_at: String(mine.last_scored_at).replace(':00Z', ':30Z') },
    ]);
    const since = `since=${new Date(Date.now() - 86_400_000).toISOString()}`;
    const own = await changes(since, appliance.key);
    assert.equal(own.data.length, 3);
    const other = await changes(since, otherKey);

    const removed = remove('subscription', 'remove', '7001');
    assert.deepEqual(removed, {
      subscription: 7001,
      subscriptions: [7001],
      keys: [],
      keys_without_subscriptions: [],
      detections: 1,
      versions: 2,
      left_in_log: null,
      configured: false,
    });
    const others = await changes(since, appliance.key);
    assert.deepEqual(
      others.data.map(({ subscription_id }) => subscription_id),
      [7002],
    );
    assert.equal(await appliance.detection(idOf(mine)), null);
    assert.equal((await appliance.get(`${CHANGES}?cursor=${own.next_cursor}`)).status, 200);
    looking(detections(), (db) => {
      checkStreams(db);
      assert.deepEqual(left(db, 7001), [0, 0]);
    });

    const highest = looking(detections(), (db) =>
      db.prepare<[], number>('SELECT max(last_position) FROM delivery').pluck().get(),
    );
    appliance.cli(['subscription', 'add', '7001', '--account', 'other']);
    const again = createKey(appliance.cli, 'other', '7001');
    assert.deepEqual((await changes(since, again)).data, []);
    const later = newRow({ subscription_id: 8001 });
    await apply([later, mine]);
    looking(detections(), (db) => {
      checkStreams(db);
      const first = db.prepare<[], { ordinal: number; position: number }>(FIRST_AGAIN).get();
      assert.ok((first?.position ?? 0) > (highest ?? 0), 'a position was given out again');
      assert.equal(first?.ordinal, countOf(db, 'stream'), 'it is the newest stream');
    });
    const seen = await changes(`cursor=${other.next_cursor}`, otherKey);
    assert.deepEqual(
      seen.data.map(({ id }) => id),
      [idOf(later)],
    );
    assert.deepEqual(
      (await changes(since, again)).data.map(({ id, version }) => [id, version]),
      [[idOf(mine), 1]],
    );
  });

  test('a key that is left with nothing stays and is named; it reads an empty stream', async () => {
    appliance.cli(['subscription', 'add', '7003', '--account', 'agency']);
    const key = createKey(appliance.cli, 'agency', '7003');
    const id = key.split('_')[2];
    const { stdout } = appliance.cli(['subscription', 'remove', '7003', '--yes']);
    assert.match(stdout, new RegExp(`no subscription left to read: ${id}\\.`));
    assert.match(
      stdout,
      /The log no longer contains them\. Files in archive\/ and backups still contain them/,
    );
    assert.match(stdout, /the file does not shrink/);
    const page = await changes(`since=${new Date().toISOString()}`, key);
    assert.deepEqual([page.data, page.has_more], [[], false]);
  });

  test('an account goes with its keys, subscriptions and detections', async () => {
    appliance.cli(['account', 'add', 'brief', '--name', 'Brief']);
    appliance.cli(['subscription', 'add', '9001', '--account', 'brief']);
    appliance.cli(['subscription', 'add', '9002', '--account', 'brief']);
    const key = createKey(appliance.cli, 'brief', '9001,9002');
    const id = key.split('_')[2] ?? '';
    await apply([newRow({ subscription_id: 9001 }), newRow({ subscription_id: 9002 })]);
    const removed = remove('account', 'remove', 'brief');
    assert.deepEqual(
      [removed.account, removed.subscriptions, removed.keys, removed.detections],
      ['brief', [9001, 9002], [id], 2],
    );
    assert.equal((await appliance.get('/v1/me', key)).status, 401);
    looking(join(appliance.data, 'access.db'), (db) => {
      for (const table of [
        "account WHERE id = 'brief'",
        "subscription WHERE account_id = 'brief'",
        `api_key WHERE id = '${id}'`,
        `api_key_subscription WHERE key_id = '${id}'`,
      ])
        assert.equal(countOf(db, table), 0, table);
    });
    looking(detections(), (db) => {
      checkStreams(db);
      for (const subscription of [9001, 9002]) assert.deepEqual(left(db, subscription), [0, 0]);
    });
    looking(join(appliance.data, 'access.db'), (db) =>
      assert.equal(countOf(db, `ended_key WHERE id = '${id}'`), 1),
    );
  });
});

test('while rows cannot be deleted from the log, an alert is open', async () => {
  const appliance = await startAppliance();
  try {
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    const [segment] = listSegments(dataFolder(appliance.data).log);
    const path = segment?.path ?? '';
    const sound = readFileSync(path);
    const damaged = Buffer.from(sound);
    const at = damaged.length >> 1;
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    const remove = (id: string) => {
      const { stdout } = appliance.cli(['subscription', 'remove', id, '--yes', '--json']);
      return JSON.parse(stdout).left_in_log;
    };
    const isOpen = async () => (await openAlertsOf(appliance)).includes('removal incomplete');
    writeFileSync(path, damaged);
    assert.match(remove('7001'), /damage|checksum/);
    await until('the alert', isOpen);
    writeFileSync(path, sound);
    assert.equal(remove('7002'), null);
    await until('its end', async () => !(await isOpen()));
  } finally {
    await appliance.stop();
  }
});

describe('half-way', () => {
  /** As a command does that is killed right after its first transaction. */
  function beginRemoval(data: string, id: number): void {
    const access = openAccess(data);
    writing(access, () => {
      takeAway(access, id);
      addRequest(access, { kind: 'remove', subscriptions: [id] }, Date.now());
    });
    access.close();
  }

  test('a removal that a command did not see to its end is done by the next start, and no earlier is the number free', async () => {
    const installation = createInstallation();
    try {
      const first = await installation.serve();
      const row = newRow();
      writeFileSync(join(installation.drop, fileName('newswire', nextWindowMs())), ndjson([row]));
      await first.logged('the file', ({ msg }) => msg === 'file applied');
      await first.stop();
      beginRemoval(installation.data, 7001);
      const add = ['subscription', 'add', '7001', '--account', 'agency'];
      const refused = installation.cli(add, { anyStatus: true });
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /still being deleted.*wirewatch subscription remove 7001/);

      const config = join(installation.data, 'wirewatch.toml');
      const key = `[[keys]]\nid = "abcdefghij23"\nhash = "${'0'.repeat(64)}"\naccount = "agency"\nname = "x"\n`;
      writeFileSync(
        config,
        `[[subscriptions]]\nid = 7001\naccount = "agency"\n${key}scopes = "detections:read"\nsubscriptions = 7001\n`,
      );
      const second = await installation.serve();
      const line = await second.logged('what differs', ({ differences }) => differences !== undefined);
      assert.deepEqual(line.differences, [
        'subscription 7001: being removed',
        'key abcdefghij23: its subscription is being removed',
      ]);
      await second.logged('the removal', ({ msg }) => msg === 'request served');
      await second.stop();
      looking(join(installation.data, 'detections.db'), (db) => {
        assert.equal(countOf(db, 'detection'), 0);
        assert.equal(countOf(db, 'stream WHERE removed = 0'), 0);
      });

      const third = await installation.serve();
      await third.logged('that it is there again', ({ subscriptions }) => Array.isArray(subscriptions));
      await third.stop();
      const { stdout } = installation.cli(['subscription', 'remove', '7001', '--yes']);
      assert.match(
        stdout,
        /wirewatch\.toml still has an entry for subscription 7001: the next start will add it again, without detections/,
      );
    } finally {
      installation.remove();
    }
  });

  test('the command, repeated, waits for a removal that is under way', () => {
    const installation = createInstallation();
    try {
      beginRemoval(installation.data, 7001);
      const { stdout } = installation.cli(['subscription', 'remove', '7001']);
      assert.match(stdout, /Subscription 7001 had already been removed/);
      installation.cli(['subscription', 'add', '7001', '--account', 'agency']);
    } finally {
      installation.remove();
    }
  });

  test('others read on meanwhile, also where the newest rows of all are those that go', async () => {
    const store = createTestStore();
    try {
      const rows = [8001, 7001, 7001].map((subscription_id, article_id) => ({
        content_type: 'text' as const,
        version: 1,
        row: { subscription_id, article_id },
      }));
      store.deliver(rows, 1000);
      const query = {
        streams: [streamName(8001, 'text')],
        content_types: ['text' as const],
        filters: NO_FILTERS,
        limit: 10,
        projection: null,
        baseUrl: Buffer.from('https://api.example'),
        recentDeliveries: new Map(),
      };
      const read: number[] = [];
      const between = async () => {
        for (const position of [0, 1])
          read.push(readChangesPage(store.reader, { ...query, start: { kind: 'after', position } }).rows);
      };
      const writer = streamWriterOn(store.writer, store.folder);
      await removeSubscription(writer, 7001, { between, tell: () => {} });
      await between();
      assert.deepEqual(new Set(read), new Set([1, 0]));
      assert.ok(read.length > 4);
    } finally {
      store.close();
    }
  });

  test('transactions are bounded, and what was left at a stop is deleted by the next run; others are not touched', async () => {
    const store = createTestStore();
    try {
      const row = (subscription: number, article: number) => ({
        content_type: 'text' as const,
        version: 1,
        row: { subscription_id: subscription, article_id: article },
      });
      const rows = Array.from({ length: 15_000 }, (_, at) => row(7001, at + 1));
      store.deliver([row(8001, 1), ...rows, row(8001, 2)], 1000);
      const writer = streamWriterOn(store.writer, store.folder);
      const left: number[] = [];
      const between = async () => {
        left.push(countOf(store.reader, 'stream_row') + countOf(store.reader, 'detection'));
        if (left.length === 2) throw new Stopping();
      };
      await assert.rejects(removeSubscription(writer, 7001, { between, tell: () => {} }), Stopping);
      assert.deepEqual(left, [20_004, 15_004]);
      const removed = await removeSubscription(writer, 7001, { between: async () => {}, tell: () => {} });
      assert.deepEqual(removed, { detections: 0, versions: 15_000 });
      assert.deepEqual([countOf(store.reader, 'stream_row'), countOf(store.reader, 'detection')], [2, 2]);
      checkStreams(store.reader);
    } finally {
      store.close();
    }
  });

  test('positions of rows that are gone are not given out again', async () => {
    const store = createTestStore();
    try {
      const row = { content_type: 'text' as const, version: 1, row: { subscription_id: 7001 } };
      const [position = 0] = store.deliver([row], 1000);
      const writer = streamWriterOn(store.writer, store.folder);
      await removeSubscription(writer, 7001, { between: async () => {}, tell: () => {} });
      assert.equal(countOf(store.reader, 'stream_row'), 0);
      assert.equal(lastPosition(store.writer), position);
    } finally {
      store.close();
    }
  });

  test('rows are found by their stream, never by looking through all', () => {
    const store = createTestStore();
    try {
      for (const [sql, index] of [
        [DELETE_STREAM_ROWS, /SEARCH stream_row USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
        [DELETE_RESCORED, /SEARCH rescored USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
        [DELETE_DETECTIONS, /SEARCH detection USING COVERING INDEX detection_by_time/],
        [COUNT_DETECTIONS, /SEARCH detection USING COVERING INDEX detection_by_time/],
      ] as const) {
        const plan = store.writer
          .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
          .all({ ordinal: 1, first: 1, end: 2, limit: 1 })
          .map(({ detail }) => detail)
          .join('\n');
        assert.match(plan, index);
        assert.doesNotMatch(plan, /SCAN|TEMP B-TREE/, plan);
      }
    } finally {
      store.close();
    }
  });
});

describe('the question', () => {
  function ask(typed: string | null, isTTY = true) {
    const input = Object.assign(new PassThrough(), { isTTY });
    const output = Object.assign(new PassThrough(), { isTTY });
    if (typed === null) input.end();
    else input.write(typed);
    return {
      asked: confirm('This removes it.', '7001', { input, output }),
      shown: () => String(output.read()),
    };
  }

  test('goes on when what is to be removed was typed', async () => {
    const { asked, shown } = ask(' 7001 \n');
    await asked;
    assert.equal(shown(), 'This removes it.\nType 7001 to confirm: ');
  });

  test('removes nothing for any other answer, or none', async () => {
    for (const typed of ['y\n', '\n', '7002\n', null])
      await assert.rejects(ask(typed).asked, { code: 'failed', message: /nothing was done/ });
    await assert.rejects(ask('7001\n', false).asked, { code: 'usage', message: /--yes/ });
  });
});
