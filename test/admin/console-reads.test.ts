/** The console's server: its views are correct, also after a restart. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type * as api from '../../src/admin/console/api.ts';
import { customerRows } from '../../src/admin/console/trends.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { streamName } from '../../src/detection/content-type.ts';
import { lagsAt } from '../../src/operations/followers.ts';
import { readStreamHead } from '../../src/query/as-of.ts';
import { versionRows } from '../../src/query/latest-rows.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { DAY_MS, formatMs, utcDay, WINDOW_MS } from '../../src/time.ts';
import { db, NOW_MS } from '../support/access-store.ts';
import { createKey, sharedAppliance } from '../support/appliance.ts';
import { openConsole } from '../support/console-client.ts';
import { fileName, idOf, ndjson, newRow, type Row } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { createTestStore, testId, testMatch, textRow, textRows } from '../support/store.ts';
import { until } from '../support/until.ts';

/** Hostile text from a publisher. */
const HOSTILE = `<img src=x onerror="alert(1)">\u202e</script>'"&#0;${'x'.repeat(4000)}`;
const first = Math.floor((Date.now() - DAY_MS) / WINDOW_MS) * WINDOW_MS;
const at = (count: number) => first + count * WINDOW_MS;
const detectedAt = formatMs(first + 1000);
const row = (own: Row) => newRow({ first_detected_at: detectedAt, last_scored_at: detectedAt, ...own });
const changed = row({ article_domain: 'one.example', source_id: 'urn:one', strength_score: 30 });
const hostile = row({ article_domain: 'two.example', article_headline: HOSTILE, subscription_id: 7002 });

const appliance = await sharedAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
let ui = await openConsole(appliance);
await appliance.dropped(fileName('newswire', at(0)), ndjson([changed, hostile]));
const rescored = { ...changed, last_scored_at: formatMs(first + 60_000), strength_score: 80 };
await appliance.dropped(fileName('newswire', at(1)), ndjson([rescored]));
await appliance.dropped(fileName('imagewire', at(1)), ndjson([row({ article_publisher_id: 12 })]));
await appliance.dropped(fileName('newswire', at(2)), 'no row at all\n');
await appliance.dropped('holiday.jpg', 'x');

test('the overview and "wirewatch status" say the same', async () => {
  const overview = await ui.get<api.Overview>('overview');
  const status = JSON.parse(appliance.cli(['status', '--json']).stdout);
  assert.deepEqual(Object.keys(overview), Object.keys(status));
  for (const name of ['exports', 'not_applied', 'health'] as const)
    assert.deepEqual(overview[name], status[name]);
  assert.deepEqual([overview.database.versions, overview.health.status], [4, 'degraded']);
  const health = JSON.parse(await (await appliance.serving().get('/v1/health')).text());
  assert.equal(overview.health.status, health.status);
});

test('files are filtered by outcome, export and name, and paged, with their reasons', async () => {
  const names = async (query: string) => {
    const { files, next } = await ui.get<api.FilesPage>(`files${query}`);
    assert.equal(next, null);
    return files.map(({ file }) => file);
  };
  assert.equal((await names('')).length, 5);
  assert.deepEqual(await names('?outcome=failed,refused'), ['holiday.jpg', fileName('newswire', at(2))]);
  assert.deepEqual(await names('?export=imagewire'), [fileName('imagewire', at(1))]);
  assert.deepEqual(await names(`?name=${encodeURIComponent('day')}`), ['holiday.jpg']);
  assert.deepEqual(await names("?name=%25'%3B--"), []);
  const { files } = await ui.get<api.FilesPage>('files?outcome=failed');
  assert.equal(files[0]?.report.errors?.[0]?.line, 1);
  const behind = await ui.get<api.FilesPage>(`files?after=${files[0]?.number}`);
  assert.equal(behind.files.length, 3);
  for (const wrong of ['after=x', 'nothing=1', 'outcome='])
    assert.equal((await ui.ask(`files?${wrong}`)).status, 400, wrong);
});

test('the live stream: newest first, filtered as in the API', async () => {
  const live = (query: string) => ui.get<api.DetectionsPage>(`detections/live${query}`);
  const all = await live('');
  assert.deepEqual(all.total, { rows: 4, or_more: false });
  assert.equal((await live('?domain=two.example')).total, null);
  const shown = all.detections.map(({ id, version }) => `${id.split('.')[0]} ${version}`);
  assert.deepEqual(shown, ['i 1', 't 2', 't 1', 't 1']);
  const ids = async (query: string) => (await live(query)).detections.map(({ id }) => id);
  assert.deepEqual(await ids('?domain=two.example'), [idOf(hostile)]);
  assert.deepEqual(await ids('?domain=one.example&min_band=medium'), [idOf(changed)]);
  assert.deepEqual(await ids('?subscription_id=7002'), [idOf(hostile)]);
  assert.equal((await ids('?content_type=image&limit=1')).length, 1);
  const late = row({});
  await appliance.dropped(fileName('newswire', at(3)), ndjson([late]));
  assert.deepEqual(await ids('?limit=1'), [idOf(late)]);
  for (const wrong of ['min_band=huge', 'fields=id', 'domain=https://x/y/z', 'limit=0'])
    assert.equal((await ui.ask(`detections/live?${wrong}`)).status, 400, wrong);
});

test('content from exports stays text in JSON, whatever it is', async () => {
  const reply = await ui.ask('detections/live?domain=two.example');
  assert.match(reply.headers['content-type'] ?? '', /^application\/json/);
  assert.equal(reply.headers['x-content-type-options'], 'nosniff');
  const { detections }: api.DetectionsPage = JSON.parse(reply.text);
  assert.equal(detections[0]?.article.headline, HOSTILE);
  const one = await ui.get<api.DetectionDetail>(`detections/one?id=${idOf(hostile)}`);
  assert.equal(one.current.article.headline, HOSTILE);
});

test('a search in a period finds what the API finds, in bounded steps', async () => {
  const found = async (query: string) => {
    const ids: string[] = [];
    for (let after = ''; ; ) {
      const page = await ui.get<api.DetectionsPage>(`detections/search?${query}${after}`);
      ids.push(...page.detections.map(({ id }) => id));
      if (page.next === null) return ids;
      after = `&after=${page.next}`;
    }
  };
  const period = `from=${formatMs(first - 30 * DAY_MS)}&to=${formatMs(first + DAY_MS)}`;
  assert.deepEqual(await found(`${period}&domain=one.example`), [idOf(changed)]);
  assert.deepEqual(await found(`${period}&source_id=urn:one`), [idOf(changed)]);
  const images = await found(`${period}&content_type=image`);
  assert.deepEqual([images.length, await found(`${period}&publisher_id=12`)], [1, images]);
  assert.deepEqual(await found(`${period}&article_id=${hostile.article_id}`), [idOf(hostile)]);
  for (const words of ['ONE.example', idOf(changed)])
    assert.deepEqual(await found(`${period}&words=${words}`), [idOf(changed)], words);
  const start = encodeURIComponent(HOSTILE.slice(0, 20));
  assert.deepEqual(await found(`${period}&words=${start}`), [idOf(hostile)]);
  assert.deepEqual(await found(`from=2020-01-01&to=2020-02-01&words=${idOf(changed)}`), [idOf(changed)]);
  const all = await found(period);
  assert.deepEqual([...(await found(`${period}&limit=1`))].sort(), [...all].sort());
  assert.equal(new Set(all).size, 4);
  const totalOf = async (query: string) =>
    (await ui.get<api.DetectionsPage>(`detections/search?${period}${query}`)).total;
  assert.deepEqual(await totalOf('&limit=1'), { rows: 4, or_more: false });
  assert.deepEqual(await totalOf('&content_type=image'), { rows: 1, or_more: false });
  assert.equal(await totalOf('&words=one'), null);
  assert.deepEqual(await found(`from=2020-01-01&to=2020-02-01`), []);
  // A step covers at least one day, however slow the machine is; days before the first detection take no step.
  let [steps, next]: [number, string | null] = [0, ''];
  for (; next !== null && steps < 100; steps += 1) {
    const after: string = next === '' ? '' : `&after=${next}`;
    const query: string = `from=1970-01-01&to=2100-01-01&domain=none.example${after}`;
    ({ next } = await ui.get<api.DetectionsPage>(`detections/search?${query}`));
  }
  assert.ok(steps <= 4, `${steps} steps`);
  const wrong = ['', 'from=2026-01-01', 'from=2026-02-01&to=2026-01-01', 'from=x&to=y'];
  for (const query of [...wrong, ...['e30', '!'].map((after) => `${period}&after=${after}`)])
    assert.equal((await ui.ask(`detections/search?${query}`)).status, 400, query);
});

test('one detection, with its versions and their differences', async () => {
  const one = await ui.get<api.DetectionDetail>(`detections/one?id=${idOf(changed)}`);
  assert.deepEqual([one.current.version, one.current.event], [2, undefined]);
  const scored = one.versions.flatMap((own) => [own.version, own.changed.includes('strength.score')]);
  assert.deepEqual(scored, [2, true, 1, false]);
  assert.equal(one.next, null);
  assert.ok(one.versions.every(({ at: delivered }) => delivered !== null));
  for (const missing of ['t.7001.1.1', 'nonsense', 't.9.9.9'])
    assert.equal((await ui.ask(`detections/one?id=${missing}`)).status, 404, missing);
  for (const after of ['{"low":0,"high":1}', `{"low":1,"high":${2 ** 52}}`]) {
    const text = Buffer.from(after).toString('base64url');
    assert.equal((await ui.ask(`detections/one?id=${idOf(changed)}&after=${text}`)).status, 404);
  }
});

test('a window has its files, with their errors', async () => {
  const of = (window: number) =>
    ui.get<api.WindowDetail>(`window?export=newswire&window_start=${formatMs(at(window))}`);
  const [done, failed] = [await of(1), await of(2)];
  assert.deepEqual([done.letter, failed.letter], ['d', 'f']);
  const all = [...done.files, ...failed.files];
  const files = all.map(({ outcome, report }) => [outcome, report.errors?.length]);
  assert.deepEqual(files.flat(), ['applied', undefined, 'failed', 1]);
  const start = 'window_start=2026-11-21T10';
  for (const wrong of ['', `export=x&${start}:10:00Z`, `export=newswire&${start}:11:00Z`])
    assert.equal((await ui.ask(`window?${wrong}`)).status, 400, wrong);
});

test('customers: usage, refusals and lag; kept across a restart', async () => {
  const key = createKey(appliance.cli, 'agency', '7001,7002');
  const [, , id = ''] = key.split('_');
  const since = new Date(Date.now() - DAY_MS).toISOString();
  await appliance.get(`/v1/detections/changes?limit=1&since=${since}`, key);
  await appliance.get('/v1/detections/changes', key);
  const entry = async (): Promise<api.KeyEntry | undefined> => {
    const { accounts } = await ui.get<api.Customers>('customers');
    return accounts[0]?.keys.find((one) => one.id === id);
  };
  await until('the counts are written', async () => (await entry())?.refused.length === 1);
  const before = await entry();
  const [refused] = before?.refused ?? [];
  assert.deepEqual([before?.rows_today, refused?.code, refused?.count], [1, 'invalid_request', 1]);
  assert.deepEqual([before?.follower?.rows_behind, before?.follower?.behind], [4, false]);
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  const counted = async (days: number) => {
    const { machine } = await ui.get<api.Trends>(`trends?days=${days}`);
    return [sum(machine.requests), sum(machine.refused)];
  };
  for (const days of [1, 7, 90]) assert.deepEqual(await counted(days), [3, 1], `${days} days`);
  const ofKeys = async () => (await ui.get<api.Trends>('trends')).keys;
  const [curves, ...others] = await ofKeys();
  const counts = [sum(curves?.requests ?? []), sum(curves?.refused ?? []), curves?.lag_seconds?.length];
  assert.deepEqual([curves?.id, counts, others], [id, [2, 1, 24], []]);
  assert.equal(curves?.lag_seconds?.[0], null, 'before it followed the stream');
  assert.ok((curves?.lag_seconds?.at(-1) ?? -1) >= 0);

  await appliance.restart();
  ui = await openConsole(appliance);
  const restarted = await entry();
  const { minutes_behind, seconds_behind } = restarted?.follower ?? {};
  const follower = { ...before?.follower, minutes_behind, seconds_behind };
  assert.deepEqual(restarted, { ...before, follower });
  assert.deepEqual(await counted(1), [3, 1]);
  await appliance.get(`/v1/detections/changes?since=${since}`, key);
  await until('the follower has caught up', async () => (await entry())?.follower?.rows_behind === 0);
  await appliance.get('/v1/detections/changes', key);
  await until('refusals go on from what there was', async () => (await entry())?.refused[0]?.count === 2);
});

test('what has changed is told by topic', async () => {
  const before = await ui.get<api.Changes>('changes');
  const changedTopics = async () => {
    const after = await ui.get<api.Changes>('changes');
    const topics = ['windows', 'detections', 'customers', 'jobs'] as const;
    return topics.filter((topic) => after[topic] !== before[topic]);
  };
  appliance.cli(['account', 'set', 'agency', '--daily-rows', 'none']);
  // A new minute also changes the windows.
  await until('the customers', async () => (await changedTopics()).includes('customers'));
  assert.ok(!(await changedTopics()).some((topic) => ['detections', 'jobs'].includes(topic)));
  await appliance.dropped(fileName('newswire', at(4)), ndjson([row({})]));
  await until('detections', async () => (await changedTopics()).includes('detections'));
  await ui.job('verify');
  assert.ok((await changedTopics()).includes('jobs'));
});

test('history: the audit trail, newest first, filtered', async () => {
  appliance.cli(['account', 'set', 'agency', '--name', 'Agency two']);
  const audit = (query: string) => ui.get<api.AuditPage>(`history/audit${query}`);
  const [newest] = (await audit('')).entries;
  const { subject, command, members } = newest ?? assert.fail();
  assert.deepEqual([subject, command, members.name?.to], ['account', 'account set', 'Agency two']);
  const keys = (await audit('?words=SUBJECT%22:%22key')).entries;
  assert.ok(keys.length >= 2 && keys.every(({ subject }) => subject === 'key'));
  assert.deepEqual((await audit('?words=nobody')).entries, []);
  // The form sends days; `to` is the first one that is left out.
  const [yesterday, tomorrow] = [utcDay(Date.now() - DAY_MS), utcDay(Date.now() + DAY_MS)];
  assert.deepEqual((await audit(`?from=${yesterday}&to=${tomorrow}`)).entries[0], newest);
  assert.deepEqual((await audit(`?from=${tomorrow}`)).entries, []);
  assert.deepEqual((await audit(`?to=${yesterday}`)).entries, []);
  assert.deepEqual((await audit(`?from=${formatMs(Date.now() + DAY_MS)}`)).entries, []);
  for (const wrong of ['yesterday', '2026-02-30'])
    assert.match((await ui.ask(`history/audit?from=${wrong}`)).text, /"status":400.*from: must be a day/);
});

test('the manual: its topics, a search, a topic', async () => {
  const { topics } = await ui.get<api.ManualTopics>('manual');
  assert.ok(topics.length > 10);
  for (const { excerpt } of (await ui.get<api.ManualTopics>('manual?search=reset')).topics)
    assert.doesNotMatch(excerpt, /[`*|#]|\]\(/, 'markup');
  const { topics: found } = await ui.get<api.ManualTopics>('manual?search=cursor%20window');
  assert.ok(found.length > 0 && found.length < topics.length && found[0]?.excerpt !== '');
  const topic = await ui.get<api.ManualTopic>(`manual/topic?name=${topics[0]?.name}`);
  assert.match(topic.html, /<h1[ >]/);
  assert.equal((await ui.ask('manual/topic?name=nothing')).status, 404);
});

test('versions of a detection whose time is later than its arrival', () => {
  // Positions follow the clock.
  using store = createTestStore(Date.parse('2026-11-21T11:00:00Z') * 1000);
  const row = { first_detected_at: '2026-11-21T12:00:00Z' };
  const rows = [1, 2].map((version) => ({ content_type: 'text', version, row }) as const);
  store.deliver(rows, 1);
  const id = testId(testMatch(rows[0] ?? assert.fail()));
  const found = versionRows(store.reader, id, null)?.rows.map(({ version }) => version);
  assert.deepEqual(found, [1, 2]);
});

test('of a damaged audit trail, the sound entries are shown, with what is missing', async () => {
  const before = await ui.get<api.AuditPage>('history/audit');
  using db = openDatabase(join(appliance.data, 'access.db'), 'write', ACCESS_SCHEMA);
  db.exec("UPDATE audit SET changes = '[]' WHERE entry = 2");
  const { entries, warning } = await ui.get<api.AuditPage>('history/audit');
  assert.match(warning ?? '', /damaged: 1 entry \(number 2\)/);
  const sound = before.entries.filter(({ entry }) => entry !== 2);
  assert.deepEqual(entries, sound);
  assert.notEqual(entries.length, before.entries.length);
});

test('each customer has the rows that were delivered between two times, most first; a silent one is left out', () => {
  addSubscription(db, { id: 7009, account_id: 'other' }, NOW_MS);
  using store = createTestStore();
  const rows = (subscription_id: number, count: number, content_type: 'text' | 'image' = 'text') =>
    textRows(count, { subscription_id }).map((row) => ({ ...row, content_type }));
  store.deliver(rows(7001, 2), 100);
  store.deliver([...rows(7001, 3, 'image'), ...rows(7002, 1)], 200);
  store.deliver(rows(7002, 1, 'image'), 300);
  const steps = [101, 201, 201, 301];
  const acme = { id: 'acme', name: 'Acme News' };
  assert.deepEqual(customerRows(store.reader, db, steps), [{ ...acme, rows: [4, 0, 1] }]);
  store.deliver(rows(7009, 20), 400);
  assert.deepEqual(customerRows(store.reader, db, [...steps, 401]), [
    { id: 'other', name: 'Other', rows: [0, 0, 0, 20] },
    { ...acme, rows: [4, 0, 1, 0] },
  ]);
});

test('a key is behind by the age of the oldest change of its streams that it has not been given', () => {
  using store = createTestStore();
  const row = (subscription_id: number, article_id: number) => textRow({ subscription_id, article_id });
  const at = (seconds: number) => seconds * 1000;
  const positions = [100, 200, 300].map((seconds, index) => {
    store.deliver([row(7001, index + 1), row(7002, index + 1)], at(seconds));
    return readStreamHead(store.reader).position;
  });
  store.deliver([row(7002, 9)], at(400));
  const [first = 0, , third = 0] = positions;
  const marks = [
    { atMs: at(50), position: null },
    { atMs: at(150), position: first },
    { atMs: at(250), position: first },
    { atMs: at(310), position: third },
    { atMs: at(500), position: third },
  ];
  const lags = (ids: readonly number[]) => {
    const streams = ids.map((id) => streamName(id, 'text'));
    return lagsAt(store.reader, streams, marks);
  };
  assert.deepEqual(lags([7001]), [null, 0, 50, 0, 0]);
  assert.deepEqual(lags([7001, 7002, 7999]), [null, 0, 50, 0, 100]);
});
