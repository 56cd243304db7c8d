/** The console in a real Chromium on the real program: empty, and each action up to its effect. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { assertAccessible, launchBrowser, skip, watchedPage } from '../support/browser.ts';
import { NO_PRELOAD } from '../support/command.ts';
import { linkOf } from '../support/console-client.ts';
import { type ConsolePage, openConsolePage } from '../support/console-page.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort } from '../support/free-port.ts';
import { testFolder } from '../support/test-folder.ts';

const SHIFTED_CLOCK = join(import.meta.dirname, '..', 'support', 'shifted-clock.cjs');
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

    test('the first expected window is changed', async () => {
      const start = formatMs(window + WINDOW_MS);
      await show(`windows?export=newswire&window=${start}`);
      await page.locator('dialog.drawer button', { hasText: 'Expect windows from here' }).click();
      await page.locator('dialog.question button.main').click();
      await page.locator('dialog.question').waitFor({ state: 'detached' });
      await page.keyboard.press('Escape');
      await show('overview');
      await page
        .locator('tr', { hasText: 'window expect' })
        .locator('td', { hasText: /^done$/ })
        .waitFor();
      assert.match(await trail(), new RegExp(`expect.*${start}`));
    });

    test('content from exports is shown as text, in the live stream and on its page', async () => {
      await show('detections');
      const headline = `<img src=x onerror="document.title='taken'">\u202Egnp.exe\u2066 ${'long '.repeat(700)}`;
      const hostile = newRow({
        article_headline: headline,
        article_url: 'https://example.com/"><script>alert(1)</script>',
      });
      await appliance.dropped(fileName('newswire', nextWindowMs()), ndjson([hostile]));
      const link = page.locator('a.title', { hasText: '<img src=x' });
      await link.waitFor();
      await link.click();
      await page.locator('h1', { hasText: '<img src=x' }).waitFor();
      await page.locator('td', { hasText: 'script' }).first().waitFor();
      assert.doesNotMatch((await page.locator('main').textContent()) ?? '', /[\u202a-\u202e\u2066-\u2069]/);
      const outside = page.locator('main a[href^="https://example.com"]');
      assert.deepEqual(
        [await outside.count(), await outside.getAttribute('rel')],
        [1, 'noreferrer noopener'],
      );
      assert.equal(await page.locator('#app :is(img, script)').count(), 0);
      assert.match(await page.title(), /Wirewatch/);
      assert.deepEqual(watched.errors, []);
      assert.equal(watched.origins.size, 1);
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

    test('a used link and an ended session are refused with an explanation', async () => {
      const link = linkOf(appliance, '--as', 'kim');
      const other = await watchedPage(browser);
      for (const text of ['Overview', 'Wirewatch']) {
        await other.page.goto(link);
        await other.page.locator('h1', { hasText: text }).waitFor();
        await other.page.evaluate('localStorage.clear()');
      }
      await other.page.locator('[role=alert]', { hasText: 'used already' }).waitFor();
      await other.close();
      appliance.cli(['console', '--end-all']);
      await page.locator('text=The session has ended.').waitFor();
    });
  });

  describe('with 90 days of windows, 200 of which failed', { skip: NO_PRELOAD }, () => {
    const FAILED = 200;
    const MONTH_MS = 31 * DAY_MS;
    const windowAt = (days: number) => Math.floor((Date.now() - days * DAY_MS) / WINDOW_MS) * WINDOW_MS;
    const [first, last] = [windowAt(89), windowAt(33)];
    const abandoned = first + WINDOW_MS;
    const row = newRow({ first_detected_at: formatMs(first), last_scored_at: formatMs(first) });
    const shifted = {
      NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`,
      TEST_CLOCK_SHIFT_MS: `${-MONTH_MS}`,
    };
    const lastSearch = () =>
      appliance
        .serving()
        .logged('the search for missing windows', ({ msg }) => msg === 'checked for missing windows');

    before(async () => {
      appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
      // Windows failed or became missing a month ago; by now they are abandoned.
      await appliance.restart(shifted);
      await appliance.dropped(fileName('newswire', first), '');
      const apart = Math.floor((last - first) / WINDOW_MS / (FAILED + 1)) * WINDOW_MS;
      const names = Array.from({ length: FAILED }, (_, at) => fileName('newswire', first + (at + 1) * apart));
      for (const name of names) appliance.put(name, ndjson([{ ...row, strength_score: 'high' }]));
      for (const name of names) await appliance.processed(name);
      await appliance.dropped(fileName('newswire', last), '');
      await appliance.restart(shifted);
      await lastSearch();
      await appliance.restart();
      assert.ok(Number((await lastSearch()).abandoned) > 7000);
      await appliance.dropped(fileName('newswire', abandoned), ndjson([row]));
      await logIn();
    });
    after(async () => {
      await watched?.close();
      await appliance?.stop();
    });

    test('every failed file is listed, with its reason', async () => {
      await show('files?outcome=failed');
      const found = page.locator('tbody tr', { hasText: /strength_score.*expected a number/ });
      for (let shown = 50; shown < FAILED; shown += 50) {
        await found.nth(shown - 1).waitFor();
        await page.locator('button.more').click();
      }
      await found.nth(FAILED - 1).waitFor();
      assert.equal(await found.count(), FAILED);
      await assertAccessible(page, 'files');
    });

    test('map, list and overview show them', async () => {
      await show('windows');
      await page.locator('tbody tr', { hasText: 'missing' }).first().waitFor();
      await assertAccessible(page, 'windows');
      await show('overview');
      await page.locator('main', { hasText: 'abandoned windows' }).waitFor();
      assert.deepEqual(watched.errors, []);
    });

    test('the held file of an abandoned window is accepted', async () => {
      await show(`windows?export=newswire&window=${formatMs(abandoned)}`);
      const dialog = page.locator('dialog.drawer');
      await dialog.locator('.facts', { hasText: /abandoned.*held/ }).waitFor();
      assert.equal(await appliance.detection(idOf(row)), null);
      await dialog.locator('button', { hasText: 'Accept' }).click();
      await page.locator('dialog.question button.main').click();
      await dialog.locator('.facts', { hasText: /done(?!d)/ }).waitFor();
      assert.equal((await appliance.detection(idOf(row)))?.version, 1);
      await page.keyboard.press('Escape');
      assert.match(await trail(), new RegExp(`kim.*window accept.*${formatMs(abandoned)}`, 's'));
    });
  });
});
