/** A page at another origin that follows the change stream, in a real Chromium (`server.cors_origins`). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { MINUTE_MS } from '../../src/time.ts';
import { type Appliance, startAppliance } from '../support/appliance.ts';
import { launchBrowser, skip, type Watched, watchedPage } from '../support/browser.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

const REQUESTS_PER_MINUTE = 12;
const CHANGES = '/v1/detections/changes';

/** What the page records of a response: everything that a script of another origin can read. */
interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { data: { id: string }[]; next_cursor: string; has_more: boolean };
}

/** Serves an empty page at another origin. */
async function startSite(): Promise<Server> {
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>Dashboard</title>');
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  return site;
}

function originOf(site: Server): string {
  const address = site.address();
  return typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
}

describe('a page in Chromium', { skip }, () => {
  let browser: Browser;
  let appliance: Appliance;
  const sites: Server[] = [];
  let origin: string;
  let stranger: string;
  const rows = Array.from({ length: 12 }, () => newRow());

  before(async () => {
    sites.push(await startSite(), await startSite());
    [origin = '', stranger = ''] = sites.map(originOf);
    appliance = await startAppliance({
      WIREWATCH_INGEST_QUIET_MS: '0',
      WIREWATCH_SERVER_CORS_ORIGINS: origin,
      WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: `${REQUESTS_PER_MINUTE}`,
    });
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    for (const site of sites) site.close();
    await appliance?.stop();
  });

  /** Starts a request in the page; {@link answer} returns its response. */
  async function ask({ page }: Watched, path: string, headers: Record<string, string> = {}): Promise<void> {
    const sent = { headers: { authorization: `Bearer ${appliance.key}`, ...headers } };
    const target = `${appliance.serving().url}${path}`;
    await page.evaluate(`globalThis.answer = fetch(${JSON.stringify(target)}, ${JSON.stringify(sent)}).then(
      async (answer) => ({ status: answer.status, headers: Object.fromEntries(answer.headers),
        body: answer.status === 304 ? null : await answer.json() }),
      (error) => String(error)); undefined`);
  }

  function answer({ page }: Watched): Promise<Seen> {
    return page.evaluate('globalThis.answer');
  }

  async function asked(watched: Watched, path: string, headers: Record<string, string> = {}): Promise<Seen> {
    await ask(watched, path, headers);
    return answer(watched);
  }

  async function openPage(at: string): Promise<Watched> {
    const watched = await watchedPage(browser);
    await watched.page.goto(at);
    return watched;
  }

  test('at an allowed origin follows the stream, and sees the headers', async () => {
    const watched = await openPage(origin);
    const encodings: (string | undefined)[] = [];
    watched.page.on('response', (response) => {
      if (response.url().includes(CHANGES)) encodings.push(response.headers()['content-encoding']);
    });
    const since = new Date(Date.now() - MINUTE_MS).toISOString();
    const first = await asked(watched, `${CHANGES}?since=${since}&limit=8`);
    assert.equal(first.status, 200);
    assert.match(`${first.headers.link}`, /^<.*cursor=.*>; rel="next"$/);
    for (const name of ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'])
      assert.ok(first.headers[name] !== undefined, name);
    assert.ok(first.headers['x-request-id'] !== undefined && first.headers.date !== undefined);
    const rest = await asked(watched, `${CHANGES}?cursor=${first.body.next_cursor}&limit=8`);
    const ids = [...first.body.data, ...rest.body.data].map(({ id }) => id);
    assert.deepEqual(ids.sort(), rows.map((row) => idOf(row)).sort());
    assert.equal(rest.body.has_more, false);
    // The browser decodes it: otherwise the body would not be JSON.
    assert.match(`${encodings[0]}`, /^(gzip|zstd)$/);

    await ask(watched, `${CHANGES}?cursor=${rest.body.next_cursor}`, { prefer: 'wait=60' });
    const late = newRow();
    await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([late]));
    const woken = await answer(watched);
    assert.deepEqual(
      woken.body.data.map(({ id }) => id),
      [idOf(late)],
    );
    if (woken.headers['preference-applied'] !== undefined)
      assert.equal(woken.headers['preference-applied'], 'wait=60');
    const waited = await asked(watched, `${CHANGES}?cursor=${woken.body.next_cursor}`, { prefer: 'wait=1' });
    assert.equal(waited.headers['preference-applied'], 'wait=1');
    assert.deepEqual(waited.body.data, []);

    const schema = await asked(watched, '/v1/schema/detection');
    const etag = `${schema.headers.etag}`;
    assert.match(etag, /^"/);
    const same = await asked(watched, '/v1/schema/detection', { 'if-none-match': etag });
    assert.deepEqual([same.status, same.headers.etag], [304, etag]);
    assert.deepEqual(watched.errors, []);
    await watched.close();
  });

  test('at another origin sees nothing, with and without a preflight', async () => {
    const watched = await openPage(stranger);
    assert.equal(await asked(watched, '/v1/me'), 'TypeError: Failed to fetch');
    const bare = `fetch(${JSON.stringify(`${appliance.serving().url}/v1/health`)}).then(() => 'read', String)`;
    assert.equal(await watched.page.evaluate(bare), 'TypeError: Failed to fetch');
    assert.match(watched.errors.join(), /blocked by CORS policy/);
    await watched.close();
  });
});
