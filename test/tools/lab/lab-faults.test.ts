/** The faults of `wirewatch lab`: every response that a client must handle, on demand. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { beforeEach, test } from 'node:test';
import { checkResponse } from '../../support/checked-fetch.ts';
import { CHANGES, SINCE_SPRING, sharedLab } from '../../support/lab.ts';

const START = `${CHANGES}?${SINCE_SPRING}`;

const lab = await sharedLab(['--clock', '2026-03-29T00:05Z']);
const health = await (await fetch(`${lab.url}/v1/health`)).text();

beforeEach(async () => {
  await lab.control('fault-clear');
  await lab.control('report', { clear: true });
  // Another minute: these tests are not about the request limit.
  await lab.control('clock', { advance: '61s' });
});

const fault = async (spec: object): Promise<string> => (await lab.control('fault-add', spec)).id;

/** Sends a request, and checks the response against the OpenAPI document. */
async function checked(target: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${lab.key}` };
  const response = await fetch(`${lab.url}${target}`, { headers, ...init });
  const body = await response.text();
  const method = init.method ?? 'GET';
  checkResponse({ method, target, status: response.status, headers: response.headers, body });
  return { status: response.status, headers: response.headers, body: JSON.parse(body) };
}

/** Sends a request. @returns the received bytes of the body, and how it ended */
function received(): Promise<{ bytes: Buffer; end: string; length: number }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const done = (end: string) => resolve({ bytes: Buffer.concat(chunks), end, length });
    const failed = (error: NodeJS.ErrnoException) => done(error.code ?? error.message);
    const headers = { authorization: `Bearer ${lab.key}` };
    const sent = request(`${lab.url}/v1/me`, { headers }, (response) => {
      length = Number(response.headers['content-length']);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => done('end'));
      response.on('error', failed);
    });
    sent.on('error', failed).end();
  });
}

for (const [spec, status, code, hasRate, wait = null, target = START] of [
  [{ status: 400 }, 400, 'invalid_request', true],
  [{ status: 401 }, 401, 'unauthorized', false],
  [{ status: 403 }, 403, 'forbidden', false],
  [{ status: 404 }, 404, 'not_found', true, null, '/v1/detections/ID'],
  [{ status: 429, retry_after: 7 }, 429, 'rate_limited', true, '7'],
  [{ code: 'daily_allowance' }, 429, 'daily_allowance', true, 'midnight'],
  [{ status: 500 }, 500, 'internal', true],
  [{ status: 500, retry_after: 3 }, 500, 'internal', true, '3'],
  [{ status: 503 }, 503, 'unavailable', false, null, '/v1/me'],
] as const)
  test(JSON.stringify(spec), async () => {
    // The detection exists; only the fault hides it.
    const { data } = await lab.read(`${START}&limit=1`);
    const asked = target.replace('ID', data[0].id);
    const id = await fault(spec);
    const { headers, body, ...answer } = await checked(asked);
    assert.deepEqual([answer.status, headers.get('x-wirewatch-lab')], [status, id]);
    assert.match(body.type, new RegExp(`/errors/${code}$`));
    assert.equal(body.request_id, headers.get('x-request-id'));
    assert.equal(headers.has('ratelimit-limit'), hasRate);
    assert.equal(headers.get('www-authenticate'), status === 401 ? 'Bearer' : null);
    const told = headers.get('retry-after');
    if (wait === 'midnight') {
      const { now } = await lab.control('clock');
      const left = (86_400_000 - (Date.parse(now) % 86_400_000)) / 1000;
      assert.ok(Math.abs(Number(told) - left) < 120, `${told} seconds to midnight, ${left} left`);
    } else assert.equal(told, wait);
    const rate = ['remaining', 'reset'].map((name) => headers.get(`ratelimit-${name}`));
    if (code === 'rate_limited') assert.deepEqual(rate, ['0', '7']);
    const next = await checked(asked);
    assert.equal(next.status, 200, 'once');
    assert.equal(next.headers.has('x-wirewatch-lab'), false);
  });

test('405 names the methods; 413, and the errors of tokens', async () => {
  await fault({ status: 405 });
  const refused = await lab.get('/v1/me');
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET']);
  const form = { method: 'POST', body: new URLSearchParams({ grant_type: 'client_credentials' }) };
  const asked = async (spec: object, headers: Readonly<Record<string, string>> = {}) => {
    await fault({ endpoint: 'createToken', ...spec });
    const answer = await checked('/oauth/token', { ...form, headers });
    const code = answer.body.error ?? answer.body.type.split('/').at(-1);
    return [answer.status, code, answer.headers.get('www-authenticate')];
  };
  assert.deepEqual(await asked({ status: 413 }), [413, 'content_too_large', null]);
  assert.deepEqual(await asked({ status: 401 }), [401, 'invalid_client', null]);
  const basic = { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` };
  assert.deepEqual(await asked({ status: 401 }, basic), [401, 'invalid_client', 'Basic realm="svc-data"']);
  assert.deepEqual(await asked({ status: 400 }), [400, 'invalid_request', null]);
  assert.deepEqual(await asked({ code: 'invalid_scope' }), [400, 'invalid_scope', null]);
  assert.deepEqual(await asked({ code: 'unsupported_grant_type' }), [400, 'unsupported_grant_type', null]);
  assert.deepEqual(await asked({ status: 429 }), [429, 'rate_limited', null]);
  assert.deepEqual(await asked({ status: 500 }), [500, 'internal', null]);
  assert.deepEqual(await asked({ status: 503 }), [503, 'unavailable', null]);
});

test('degraded health has its own form', async () => {
  await fault({ status: 503, endpoint: 'getHealth' });
  const { status, body } = await checked('/v1/health', { headers: {} });
  assert.equal(status, 503);
  const { alerts, ...rest } = JSON.parse(health);
  const more = { ...alerts, open: alerts.open + 1, page_worthy: alerts.page_worthy + 1 };
  assert.deepEqual(body, { ...rest, status: 'degraded', alerts: more });
});

test("502 and 504 look like a proxy's", async () => {
  for (const status of [502, 504]) {
    const id = await fault({ status });
    const response = await lab.get('/v1/me');
    assert.deepEqual([response.status, response.headers.get('content-type')], [status, 'text/html']);
    assert.equal(response.headers.get('x-request-id'), null);
    assert.equal(response.headers.get('x-wirewatch-lab'), id);
    assert.match(await response.text(), new RegExp(`<h1>${status} `));
  }
});

test('Retry-After as 0, and as a date', async () => {
  const told = async (spec: object) => {
    await fault(spec);
    const { headers } = await lab.get('/v1/me');
    return [headers.get('retry-after'), headers.get('date')];
  };
  assert.equal((await told({ status: 429, retry_after: 0 }))[0], '0');
  for (const status of [502, 503]) {
    const [until = '', date = ''] = await told({ status, retry_after: 90, retry_after_date: true });
    assert.match(until ?? '', /^[A-Z][a-z]{2}, .* GMT$/);
    const seconds = (Date.parse(until ?? '') - Date.parse(date ?? '')) / 1000;
    assert.ok(seconds === 90 || seconds === 91, `${seconds}`);
  }
  const { requests } = await lab.control('report');
  const waits = requests.map((one: { retry_after: number }) => one.retry_after);
  assert.deepEqual(waits, [0, 90, 90]);
});

test('a page can be shorter, with has_more', async () => {
  await fault({ page_rows: 2 });
  assert.equal((await lab.get('/v1/me')).status, 200, 'another endpoint has no pages');
  const short = await checked(`${START}&limit=5`);
  assert.deepEqual([short.body.data.length, short.body.has_more], [2, true]);
  const next = await checked(`${CHANGES}?cursor=${short.body.next_cursor}&limit=3`);
  const whole = await lab.read(`${START}&limit=5`);
  assert.deepEqual([...short.body.data, ...next.body.data], whole.data);
});

const statuses = async (count: number, target = '/v1/me') => {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) found.push((await lab.get(target)).status);
  return found;
};

test('a fault meets requests by endpoint, count and order', async () => {
  await fault({ status: 503, endpoint: 'listChanges' });
  await fault({ status: 429, endpoint: 'getMe', times: 2 });
  await fault({ status: 500, endpoint: 'getMe', after: 1 });
  assert.deepEqual(await statuses(5), [429, 429, 200, 500, 200]);
  assert.deepEqual(await statuses(2, START), [503, 200]);
});

test('a request that is refused anyway leaves the fault for the next', async () => {
  await fault({ status: 500 });
  assert.equal((await lab.get('/v1/me', { authorization: 'Bearer nobody' })).status, 401);
  assert.deepEqual(await statuses(2), [500, 200]);
});

test('a response is late, and its body slow', async () => {
  const id = await fault({ delay: '300ms' });
  const beganMs = performance.now();
  const late = await lab.get('/v1/me');
  assert.ok(performance.now() - beganMs >= 290);
  assert.equal(late.headers.get('x-wirewatch-lab'), id);
  const bytes = (await (await lab.get('/v1/me')).text()).length;
  await fault({ slow: bytes * 2 });
  const slowMs = performance.now();
  const slow = await lab.get('/v1/me');
  const headMs = performance.now();
  assert.equal((await slow.text()).length, bytes);
  assert.ok(performance.now() - slowMs >= 390, 'half a second, minus the last pause');
  assert.ok(performance.now() - headMs >= 100, 'the head must be sent immediately');
});

test('a response is cut, reset and truncated', async () => {
  const whole = await received();
  assert.deepEqual([whole.end, whole.bytes.length], ['end', whole.length]);
  await fault({ cut_after: whole.length });
  assert.equal((await received()).end, 'end', 'it waits for a longer body');
  await lab.control('fault-clear');
  await fault({ cut_after: 50 });
  const cut = await received();
  assert.deepEqual(cut, { bytes: whole.bytes.subarray(0, 50), end: 'ECONNRESET', length: whole.length });
  await fault({ cut_after: 50, reset: true });
  assert.equal((await received()).end, 'ECONNRESET');
  await fault({ truncate: 30 });
  assert.deepEqual(await received(), { bytes: whole.bytes.subarray(0, 30), end: 'end', length: 30 });
  await fault({ reset: true });
  const reset = await received();
  assert.deepEqual([reset.bytes.length, reset.end], [0, 'ECONNRESET']);
});

test('an empty page has has_more, and its cursor repeats the position', async () => {
  await fault({ empty_page: true, times: 2, endpoint: 'listChanges' });
  const { next_cursor } = await lab.read(`${START}&limit=5`);
  const after = (cursor: string) => `${CHANGES}?cursor=${cursor}&limit=5`;
  const first = await checked(after(next_cursor));
  assert.deepEqual([first.body.data, first.body.has_more], [[], true]);
  assert.ok(first.headers.get('link')?.includes(first.body.next_cursor));
  const second = await checked(after(first.body.next_cursor));
  assert.deepEqual([second.body.data, second.body.has_more], [[], true]);
  const whole = await lab.read(after(next_cursor));
  assert.ok(whole.data.length > 0);
  assert.deepEqual((await lab.read(after(second.body.next_cursor))).data, whole.data);
});

test('a page is delivered twice', async () => {
  await fault({ duplicate: true, endpoint: 'listChanges' });
  const first = await checked(`${START}&limit=5`);
  assert.equal(first.headers.has('x-wirewatch-lab'), false, 'there is no earlier page to repeat');
  const again = await checked(`${CHANGES}?cursor=${first.body.next_cursor}&limit=5`);
  assert.ok(again.headers.has('x-wirewatch-lab'));
  assert.deepEqual(again.body, first.body);
  const next = await checked(`${CHANGES}?cursor=${again.body.next_cursor}&limit=5`);
  assert.notDeepEqual(next.body.data, first.body.data);
  assert.equal(next.headers.has('x-wirewatch-lab'), false);
});

test('the report has every request, with its faults', async () => {
  await fault({ status: 429, retry_after: 7, endpoint: 'listChanges' });
  await lab.get(`${START}&limit=5`, { 'user-agent': 'poller/1' });
  const page = await lab.read(`${START}&limit=5&content_type=text`);
  await lab.get(`${CHANGES}?cursor=${page.next_cursor}`);
  await lab.get('/v1/nothing');
  const { faults, requests, seed, now } = await lab.control('report');
  assert.equal(seed, '1');
  assert.ok(Date.parse(now) >= Date.parse(requests[0].at));
  assert.deepEqual([faults.length, faults[0].fired, faults[0].left], [1, 1, 0]);
  const [refused, read, next, nowhere] = requests;
  assert.equal(requests.length, 4);
  const { endpoint, status, code, retry_after, fault: id, user_agent } = refused;
  assert.deepEqual([endpoint, status, code, retry_after], ['listChanges', 429, 'rate_limited', 7]);
  assert.deepEqual([id, user_agent], [faults[0].id, 'poller/1']);
  assert.deepEqual(read.parameters, { since: '2026-03-28T23:59:00Z', limit: '5', content_type: 'text' });
  assert.deepEqual([read.rows, read.cursor_given, read.has_more], [5, page.next_cursor, true]);
  assert.deepEqual([read.as_of, read.complete, read.key_id], [page.as_of, true, lab.key.split('_')[2]]);
  assert.equal(next.parameters.cursor, page.next_cursor);
  assert.deepEqual([nowhere.endpoint, nowhere.path, nowhere.status], [null, '/v1/nothing', 404]);
  assert.ok(Date.parse(read.at) > 0 && Date.parse(read.real_at) > 0 && read.finished_at >= read.at);
  assert.equal((await lab.control('report', { after: read.number })).requests.length, 2);
});

test('a page whose since is too old by now is not delivered twice', async () => {
  const first = await checked(`${START}&limit=5`);
  await lab.control('clock', { advance: '40d' });
  await fault({ duplicate: true, endpoint: 'listChanges' });
  const next = await checked(`${CHANGES}?cursor=${first.body.next_cursor}&limit=5`);
  assert.deepEqual([next.status, next.headers.has('x-wirewatch-lab')], [200, false]);
  assert.notDeepEqual(next.body.data, first.body.data);
});
