/** The administration port: its pages, refusals and metrics. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { createMetrics } from '../../src/admin/metrics.ts';
import { answerRequest, send as sendTold } from '../../src/admin/operation-requests.ts';
import { createConditions } from '../../src/health/alert-conditions.ts';
import { evaluateHealth } from '../../src/health/rules.ts';
import { CONNECTION_TIMES, openListener } from '../../src/http/listener.ts';
import { writeScrubRecord } from '../../src/log/scrub-findings.ts';
import { createLogger } from '../../src/logger.ts';
import { failed } from '../../src/refused.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { DAY_MS, WINDOW_MS } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { send } from '../support/console-client.ts';
import { fileName, ndjson, newRow } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { operationsOptions, testOperations } from '../support/live.ts';
import { metricsOfManual } from '../support/manual.ts';
import { createTestStore } from '../support/store.ts';
import { inBody, postToken } from '../support/token-client.ts';

const port = await freePort();
const admin = `http://127.0.0.1:${port}`;
const appliance = await sharedAppliance({
  WIREWATCH_ADMIN_PORT: `${port}`,
  WIREWATCH_SERVER_MAX_CONNECTIONS: '100',
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000',
  WIREWATCH_LIMITS_TOKEN_REQUESTS_PER_MINUTE: '2',
});

const metricsText = async () => (await fetch(`${admin}/metrics`)).text();
/** The value of each metric, with its labels. */
async function metrics(): Promise<Map<string, number>> {
  const lines = (await metricsText()).matchAll(/^([^#].*) (\S+)$/gm);
  return new Map(Array.from(lines, ([, name = '', value]) => [name, Number(value)]));
}

test('logs its address', async () => {
  const line = await appliance.serving().logged('it', ({ msg }) => msg === 'administration listening');
  assert.equal(line.url, admin);
});

test('every page has its headers, without a session', async () => {
  for (const path of ['/', '/app.js', '/style.css', '/metrics', '/openapi-admin.json']) {
    const { status, headers } = await fetch(`${admin}${path}`);
    assert.deepEqual([status, headers.get('x-content-type-options')], [200, 'nosniff'], path);
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  }
});

test('HEAD has the headers of GET; other methods are 405, other paths 404', async () => {
  const head = await fetch(`${admin}/app.js`, { method: 'HEAD' });
  assert.deepEqual([head.status, await head.text()], [200, '']);
  assert.ok(Number(head.headers.get('content-length')) > 1000);
  const post = await fetch(`${admin}/metrics`, { method: 'POST' });
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
  for (const path of ['/nothing', '/manual/', '/status', '/v1/health', '/__proto__', '/metrics/']) {
    const response = await fetch(`${admin}${path}`);
    assert.equal(response.status, 404, path);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  }
});

test('the API port serves none of these paths', async () => {
  for (const path of ['/metrics', '/manual', '/console/overview'])
    assert.equal((await appliance.serving().get(path)).status, 404, path);
});

test('counts files, rows, requests by endpoint and status, rows served, tokens and refusals', async () => {
  const before = await metrics();
  const grown = (now: Map<string, number>, name: string) => (now.get(name) ?? 0) - (before.get(name) ?? 0);
  const since = new Date(Date.now() - 1000).toISOString();
  const ended = (windows: number) => (Math.floor(Date.now() / WINDOW_MS) - windows) * WINDOW_MS;
  await appliance.dropped(fileName('newswire', ended(3)), ndjson([newRow(), newRow(), newRow()]));
  await appliance.dropped(fileName('newswire', ended(2)), 'broken\n');
  assert.equal((await appliance.read(`/v1/detections/changes?since=${since}`)).data.length, 3);
  await appliance.get('/v1/detections/changes');
  await appliance.get('/v1/me', 'nonsense');
  await appliance.serving().get('/made/up');
  const [, , id = ''] = appliance.key.split('_');
  for (const expected of [200, 200, 429]) {
    const token = await postToken(appliance.serving(), inBody({ id, secret: appliance.key }));
    assert.equal(token.status, expected);
  }

  const now = await metrics();
  const expected: [string, number][] = [
    ['wirewatch_files_total{export="newswire",outcome="applied"}', 1],
    ['wirewatch_files_total{export="newswire",outcome="failed"}', 1],
    ['wirewatch_rows_ingested_total{export="newswire",outcome="created"}', 3],
    [requests('/v1/detections/changes', '2xx'), 1],
    [requests('/v1/detections/changes', '4xx'), 1],
    [requests('/v1/me', '4xx'), 1],
    [requests('none', '4xx'), 1],
    [requests('/oauth/token', '2xx'), 2],
    [requests('/oauth/token', '4xx'), 1],
    ['wirewatch_rows_served_total{endpoint="/v1/detections/changes"}', 3],
    ['wirewatch_refused_total{limit="token_requests"}', 1],
    ['wirewatch_windows{export="newswire",status="done"}', 1],
    ['wirewatch_windows{export="newswire",status="failed"}', 1],
    ['wirewatch_alerts_open{alert="failed windows",page_worthy="false"}', 1],
  ];
  for (const [name, by] of expected) assert.equal(grown(now, name), by, name);
  const health = JSON.parse(await (await appliance.serving().get('/v1/health')).text());
  const newest = now.get('wirewatch_newest_done_timestamp_seconds{export="newswire"}');
  assert.equal(newest, Date.parse(health.exports.newswire.newest_done) / 1000);
  assert.equal(now.has('wirewatch_newest_done_timestamp_seconds{export="imagewire"}'), false);
  assert.ok((now.get('wirewatch_database_bytes{database="detections"}') ?? 0) > 0);
  assert.ok((now.get('wirewatch_connections') ?? 0) > 0);
  assert.ok(now.has('process_resident_memory_bytes'));
  // Two event-loop monitors would each measure only a part.
  assert.ok(!now.has('nodejs_eventloop_lag_p99_seconds'));
  for (const folder of ['data', 'drop'])
    assert.ok((now.get(`wirewatch_disk_free_bytes{folder="${folder}"}`) ?? 0) > 0, folder);
  assert.ok(!now.has('wirewatch_disk_free_bytes{folder="copy"}'), 'no copy is kept');
});

test('counts rows of the day and the last request by account, including accounts without requests', async () => {
  appliance.cli(['account', 'add', 'silent', '--name', 'Silent']);
  const rows = (of: Map<string, number>, account: string) =>
    of.get(`wirewatch_account_rows_today{account="${account}"}`);
  const asked = (of: Map<string, number>, account: string) =>
    of.get(`wirewatch_account_last_request_timestamp_seconds{account="${account}"}`);
  const before = await metrics();
  const from = Date.now();
  const since = new Date(from - DAY_MS).toISOString();
  const { length } = (await appliance.read(`/v1/detections/changes?since=${since}`)).data;
  assert.ok(length > 0);
  const now = await metrics();
  assert.equal((rows(now, 'agency') ?? 0) - (rows(before, 'agency') ?? 0), length);
  const last = Math.round((asked(now, 'agency') ?? 0) * 1000);
  assert.ok(last >= from && last <= Date.now(), `${last}`);
  assert.deepEqual([rows(now, 'silent'), asked(now, 'silent')], [0, undefined]);
});

test('the manual lists exactly the existing metrics', async () => {
  // There is no metric before the first scrub.
  appliance.cli(['verify']);
  const text = await metricsText();
  const names = [...text.matchAll(/^# TYPE (wirewatch_\w+) /gm)].map(([, name]) => name);
  const listed = metricsOfManual().map(({ name }) => name);
  assert.deepEqual(names.sort(), listed.sort());
  for (const { name, labels } of metricsOfManual()) {
    const [, own = ''] = new RegExp(`^${name}(?:_bucket)?\\{([^}]*)\\}`, 'm').exec(text) ?? [];
    const found = [...own.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le');
    assert.deepEqual(found.sort(), labels.sort(), name);
  }
  const uncompared = { entry: null, findings: [], not_compared: 'too little room' };
  writeScrubRecord(dataFolder(appliance.data), uncompared, Date.now());
  assert.doesNotMatch(await metricsText(), /^wirewatch_(verified|copy)/m);
  assert.match(appliance.cli(['status']).stdout, /^verified +.* ago; not compared: too little room$/m);
});

test('connections that send no complete request shut nobody out of it', async () => {
  const open = async (count: number) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(['', 'GET / HTTP/1.1\r\n', 'POST /console/session HTTP/1.1\r\nContent-'][count % 3] ?? '');
    return socket;
  };
  const silent = await Promise.all(Array.from({ length: 150 }, (_, count) => open(count)));
  const [response] = await once(request(`${admin}/metrics`, { agent: false }).end(), 'response');
  assert.equal(response.resume().statusCode, 200);
  for (const socket of silent) socket.destroy();
});

test('an operation may take longer than its connection may be silent', async () => {
  const ask = async () => {
    await wait(600);
    throw failed('that took long');
  };
  const { ingest, settings } = operationsOptions(appliance.data);
  const operations = testOperations(appliance.data, { ingest: { ...ingest, ask } });
  const listener = await openListener({
    settings: { ...settings.config.server, port: 0 },
    limits: settings.config.server,
    conditions: createConditions(Date.now),
    now: Date.now,
    times: { ...CONNECTION_TIMES, idleMs: 200 },
    log: createLogger({ level: 'silent' }),
  });
  const asker = { way: 'api', by: { actor: 'test' }, mayAct: true, isValid: () => true } as const;
  listener.server.on('request', (request, response) =>
    listener.connections.inTurn(response, async () =>
      sendTold(response, await answerRequest(request, response, operations, asker)),
    ),
  );
  const url = await listener.listen();
  try {
    for (const accept of ['application/json', 'application/x-ndjson']) {
      const headers = { accept, 'content-type': 'application/json' };
      const { text } = await send('POST', `${url}/operations/compact`, headers, {});
      assert.match(text, /that took long/);
    }
  } finally {
    await listener.close(0);
  }
});

const requests = (endpoint: string, status: string): string =>
  `wirewatch_http_request_duration_seconds_count{endpoint="${endpoint}",status="${status}"}`;

const PAUSED = { newest_done: { newswire: null, imagewire: null }, enabled: [], is_paused: true };

test('without a status the other metrics are answered', async () => {
  using store = createTestStore();
  const text = await createMetrics({ answered() {}, refuse() {} }).text({
    monitor: { health: () => evaluateHealth(PAUSED, [], 0), alerts: () => [] },
    folder: dataFolder(store.folder),
    dailyRows: { used: () => 0 },
    keyUses: { all: () => [] },
    certificateExpiresMs: () => null,
    connections: () => 0,
    now: Date.now,
    status: async () => null,
  });
  assert.match(text, /^wirewatch_healthy 1$/m);
  assert.doesNotMatch(text, /^wirewatch_(database_bytes|windows|follower_lag_seconds)\b/m);
});
