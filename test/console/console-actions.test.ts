/** The console in a real Chromium on the real program: empty, and each action up to its effect. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { WINDOW_MS } from '../../src/time.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { assertAccessible, launchBrowser, skip } from '../support/browser.ts';
import { type ConsolePage, openConsolePage } from '../support/console-page.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { testFolder } from '../support/test-folder.ts';

const VIEWS = [
  'overview',
  'windows',
  'files',
  'customers',
  'detections',
  'detections?mode=search',
  'history',
  'manual',
  'manual/troubleshooting',
  'manual/your-exports',
];

describe('the console of the real program, in a browser', { skip }, () => {
  let browser: Browser;
  let appliance: Appliance;
  let { page, watched, show, act, button, trail } = {} as ConsolePage;
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser?.close());

  async function logIn(...options: string[]): Promise<void> {
    ({ page, watched, show, act, button, trail } = await openConsolePage(browser, appliance, ...options));
  }

  describe('of an empty installation', () => {
    before(async () => {
      appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
    });
    after(() => appliance?.stop());

    test('each view says so, without an error', async () => {
      await logIn();
      await page.setViewportSize({ width: 420, height: 900 });
      for (const view of VIEWS) {
        await show(view);
        assert.equal(await page.locator('.failure').count(), 0, view);
        await assertAccessible(page, view);
      }
      await show('overview');
      await page.locator('.tile', { hasText: 'Nobody is behind' }).waitFor();
      assert.deepEqual(watched.errors, []);
      assert.equal(watched.origins.size, 1);
      await watched.close();
    });
  });

  describe('with a failed window and a key', () => {
    const window = nextWindowMs();
    const file = fileName('newswire', window);
    const row = newRow();
    before(async () => {
      appliance = await startAppliance({
        WIREWATCH_ADMIN_PORT: `${await freePort()}`,
        WIREWATCH_COPY_TO: join(testFolder(), 'copy'),
      });
      await appliance.dropped(fileName('newswire', window - WINDOW_MS), ndjson([newRow()]));
      await appliance.dropped(file, ndjson([{ ...row, strength_score: 'high' }]));
      await appliance.dropped(file, ndjson([row]));
    });
    after(() => appliance?.stop());
    beforeEach(() => logIn());
    afterEach(() => watched?.close());

    test('pause and resume', async () => {
      await show('overview');
      await act(button('Pause ingest'));
      await page.locator('.health', { hasText: 'Paused' }).waitFor();
      const paused = await (await appliance.get('/v1/health')).json();
      assert.equal(Object(paused).alerts.paused, 1);
      await act(button('Resume ingest'));
      await button('Pause ingest').waitFor();
      assert.equal(Object(await (await appliance.get('/v1/health')).json()).alerts.paused, 0);
      assert.match(await trail(), /kim.*console/s);
    });

    test('the held file of a failed window is read: list, map and reason agree before, and after', async () => {
      await show('windows');
      const start = new Date(window).toISOString().slice(0, 16).replace('T', ' ');
      await page.locator('tbody tr', { hasText: start }).locator('a').click();
      const dialog = page.locator('dialog.drawer');
      await dialog.locator('.story', { hasText: 'strength_score' }).waitFor();
      assert.match((await dialog.textContent()) ?? '', /"high"/);
      await dialog.locator('button', { hasText: 'Reset' }).click();
      await page.locator('dialog.question button.main').click();
      await dialog.locator('.facts', { hasText: 'done' }).waitFor();
      assert.equal((await appliance.detection(idOf(row)))?.version, 1);
      await page.keyboard.press('Escape');
      await page.locator('.empty', { hasText: /^None\.$/ }).waitFor();
      await page.locator('p', { hasText: /newswire: 2,\d{3} windows are due/ }).waitFor();
      assert.equal(await page.locator('tbody tr', { hasText: start }).count(), 0);
      assert.match(await trail(), /kim.*newswire/s);
    });

    test('a backup, a verification and a replay succeed', async () => {
      const done = (label: string) =>
        page
          .locator('tr', { hasText: label })
          .locator('td', { hasText: /^done$/ })
          .waitFor();
      await show('overview');
      for (const [label, name] of [
        ['Back up now', 'backup'],
        ['Verify now', 'verify'],
      ] as const) {
        await act(button(label));
        await done(name);
      }
      await show('files');
      await act(button('Replay files'));
      await show('overview');
      await done('ingest replay');
    });

    test('a session survives a reload and holds in a second tab; other ports of the host receive nothing', async () => {
      const received: string[] = [];
      const thief = createServer(({ rawHeaders, url }, response) => {
        received.push(`${url} ${rawHeaders.join(' ')}`);
        response
          .setHeader('Content-Type', 'text/html')
          .end('<img src="/icon.png"><body onload="saw = true">');
      });
      thief.listen(0, '127.0.0.1');
      await once(thief, 'listening');
      const { origin } = new URL(page.url());
      const kept = JSON.parse(await page.evaluate('JSON.stringify(localStorage)'));
      const [secret = ''] = Object.values(kept).map(String);
      assert.match(secret, /^[\w-]{32}$/);
      await page.reload();
      await page.locator('h1', { hasText: 'Overview' }).waitFor();
      const tab = await page.context().newPage();
      await tab.goto(`${origin}/`);
      await tab.locator('h1', { hasText: 'Overview' }).waitFor();
      const address = thief.address();
      assert.ok(address !== null && typeof address === 'object');
      await tab.goto(`http://127.0.0.1:${address.port}/`);
      await tab.waitForFunction('window.saw');
      assert.equal(await tab.evaluate('JSON.stringify([document.cookie, {...localStorage}])'), '["",{}]');
      assert.deepEqual(await tab.context().cookies(), []);
      const text = received.join('\n');
      assert.match(text, /\/icon\.png/);
      assert.ok(!text.includes(secret) && !/cookie|authorization/i.test(text), text);
      await tab.close();
      thief.close();
      thief.closeAllConnections();
    });
  });
});
