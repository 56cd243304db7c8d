/** The console in a real Chromium on the real program: empty, its dialogs, and each action up to its effect. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { DAY_MS, formatMs, WINDOW_MS } from '../../src/time.ts';
import { type Appliance, createKey, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { assertAccessible, contrastOf, launchBrowser, skip } from '../support/browser.ts';
import { type ConsolePage, openConsolePage, VIEWS } from '../support/console-page.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { freePort, listen } from '../support/free-port.ts';
import { testFolder } from '../support/test-folder.ts';

describe('the console of the real program, in a browser', { skip }, () => {
  let browser: Browser;
  let appliance: Appliance;
  let { page, watched, show, act, button, field, confirm, makeKey, trail } = {} as ConsolePage;
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser?.close());

  async function logIn(...options: string[]): Promise<void> {
    const opened = await openConsolePage(browser, appliance, ...options);
    ({ page, watched, show, act, button, field, confirm, makeKey, trail } = opened);
  }

  test('of an empty installation, each view says so, without an error', async () => {
    await using empty = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
    appliance = empty;
    await logIn();
    await page.setViewportSize({ width: 420, height: 900 });
    for (const view of [...VIEWS, 'manual/troubleshooting', 'manual/your-exports']) {
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

    const statusOf = async (key: string) => (await appliance.get('/v1/me', key)).status;

    test('pause and resume', async () => {
      await show('overview');
      await act(button('Pause ingest'));
      await page.locator('.health', { hasText: 'Paused' }).waitFor();
      assert.equal(Object(await (await appliance.get('/v1/health')).json()).alerts.paused, 1);
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
      await page.locator('p', { hasText: /newswire: 2\d{3} windows are due/ }).waitFor();
      assert.equal(await page.locator('tbody tr', { hasText: start }).count(), 0);
      assert.match(await trail(), /kim.*newswire/s);
    });

    test('a backup, a verification and a replay succeed', async () => {
      const done = (name: string) =>
        page.locator('tr', { hasText: name, has: page.locator('td', { hasText: /^done$/ }) }).waitFor();
      await show('overview');
      for (const [label, name] of Object.entries({ 'Back up now': 'backup', 'Verify now': 'verify' })) {
        await act(button(label));
        await done(name);
      }
      await show('files');
      await act(button('Replay files'));
      await show('overview');
      await done('ingest replay');
    });

    test('a key is created, works, is rotated and revoked', async () => {
      await show('customers');
      const first = await makeKey(button('Make a key'), 'Night desk', '7001');
      assert.equal(await statusOf(first), 200);
      const lineOf = (key: string) => page.locator('tbody tr', { hasText: key.split('_')[2] ?? '' });
      appliance.cli(['key', 'set', first.split('_')[2] ?? '', '--expires', formatMs(Date.now() + DAY_MS)]);
      await lineOf(first).filter({ hasText: 'ends' }).waitFor();
      await act(lineOf(first).locator('button', { hasText: 'Rotate' }), async () => {
        assert.equal(await field('expires').inputValue(), '', 'the end is that of the old key');
        await field('overlap').fill('0');
      });
      const second = (await page.locator('dialog pre').textContent()) ?? '';
      await page.locator('dialog button.main').click();
      assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);
      const [, , id = ''] = second.split('_');
      await act(lineOf(second).locator('button', { hasText: 'Revoke' }), () => confirm(id));
      await page.locator('.said', { hasText: /revoked/i }).waitFor();
      assert.equal(await statusOf(second), 401);
      const shown = await trail();
      assert.match(shown, /revoked_at/);
      assert.ok(!shown.includes(first) && !shown.includes(second));
    });

    test('an account, a subscription and a key are added, changed and removed, each with its command', async () => {
      await show('customers');
      const shown = async () => (await page.locator('dialog.question code').textContent()) ?? '';
      await act(button('Add an account'), async () => {
        await field('id').fill('acme');
        await field('name').fill("Ada's News");
        assert.match(await shown(), /^wirewatch account add acme --name 'Ada'\\''s News'\s*$/);
        await assertAccessible(page, 'a form');
      });
      const panel = page.locator('section', { has: page.locator('h2', { hasText: "Ada's News" }) });
      await act(panel.locator('button', { hasText: 'Add a subscription' }), async () => {
        await field('id').fill('7101');
        await page.locator('dialog.question input[name=content_types][value=text]').check();
        const add = /^wirewatch subscription add 7101 --account acme --content-types text\s*$/;
        assert.match(await shown(), add);
      });
      const inRow = (row: string, label: string) =>
        panel.locator('tr', { hasText: row }).locator('button', { hasText: label });
      await panel.locator('tr', { hasText: '7101' }).waitFor();
      const key = await makeKey(panel.locator('button', { hasText: 'Make a key' }), 'Desk', '7101');
      assert.equal(await statusOf(key), 200);

      await act(inRow('Desk', 'Change'), async () => {
        await field('name').fill('Night desk');
        await field('daily_rows').fill('5000');
        const set = /^wirewatch key set [a-z2-7]{12} --name 'Night desk' --daily-rows 5000\s*$/;
        assert.match(await shown(), set);
      });
      await panel.locator('tr', { hasText: 'Night desk' }).waitFor();
      // No box of the form says this: a change of something else must not take it away.
      appliance.cli(['key', 'set', key.split('_')[2] ?? '', '--subscriptions', '7101:text']);
      await panel.locator('tr', { hasText: '7101:text' }).waitFor();
      await act(inRow('Night desk', 'Change'), async () => {
        assert.equal(await field('daily_rows').inputValue(), '5000');
        await field('daily_rows').fill('');
        assert.match(await shown(), /^wirewatch key set [a-z2-7]{12} --daily-rows none\s*$/);
      });
      await panel.locator('header button', { hasText: 'Change' }).click();
      await field('name').fill('');
      await page.locator('dialog.question button.main').click();
      await page.locator('dialog.question [role=alert]').waitFor();
      await page.keyboard.press('Escape');

      await act(inRow('7101', 'Remove'), async () => {
        await page.locator('dialog.question p', { hasText: 'This cannot be undone' }).waitFor();
        assert.ok(await page.locator('dialog.question button.main').isDisabled());
        await confirm('7101');
      });
      await panel.locator('.empty', { hasText: 'No subscription yet' }).waitFor();
      await act(panel.locator('header button', { hasText: 'Remove' }), () => confirm('acme'));
      await panel.waitFor({ state: 'detached' });
      assert.equal(await statusOf(key), 401);
      assert.match(await trail(), /account remove/);
      // The empty name was refused.
      assert.equal(watched.errors.filter((text) => !text.includes('400 (Bad Request)')).length, 0);
    });

    test('an action asks once, says what will happen, sends its body, and shows the outcome', async () => {
      const [, , id = ''] = createKey(appliance.cli, 'agency', '7001').split('_');
      const posted: unknown[] = [];
      const refused = { status: 409, json: { detail: 'the key is revoked already' } };
      await page.route('**/operations/key-revoke', (route) => {
        posted.push(route.request().postDataJSON());
        return posted.length === 1 ? route.fulfill(refused) : route.continue();
      });
      await show('customers');
      const revoke = page.locator('tr', { hasText: id }).locator('button', { hasText: 'Revoke' });
      await revoke.click();
      await page.locator('dialog p', { hasText: 'cannot be undone' }).waitFor();
      await assertAccessible(page, 'a question');
      await page.locator('dialog button', { hasText: 'Cancel' }).click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(posted, []);
      await revoke.click();
      await confirm(id);
      await page.locator('dialog button.main').click();
      await page.locator('dialog [role=alert]', { hasText: 'the key is revoked already' }).waitFor();
      await page.locator('dialog button.main').click();
      await page.locator('.said', { hasText: /revoked/i }).waitFor();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(posted, [{ id }, { id }]);
    });

    test('the text of buttons can be read in every state and both themes', async () => {
      await show('customers');
      const read = async (place: string, what: string) => {
        const contrast = await contrastOf(page, place);
        assert.ok(contrast >= 4.5, `${what}: ${contrast.toFixed(2)}`);
      };
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        for (const opening of ['Make a key', 'Revoke']) {
          await button(opening).first().click();
          for (const place of ['dialog footer button:not(.main)', 'dialog button.main']) {
            const pressed = page.locator(place);
            await pressed.waitFor();
            const what = `${opening}, ${place}, ${colorScheme}`;
            if (opening === 'Revoke' && place.endsWith('main')) {
              await read(place, `${what}, disabled`);
              await confirm(appliance.key.split('_')[2] ?? '');
            }
            await read(place, what);
            await pressed.focus();
            await read(place, `${what}, focus`);
            await pressed.hover();
            await read(place, `${what}, hover`);
            await page.mouse.down();
            await read(place, `${what}, active`);
            // It is released elsewhere: it was not pressed.
            await page.locator('dialog h2').hover();
            await page.mouse.up();
          }
          await page.keyboard.press('Escape');
          await page.locator('dialog').waitFor({ state: 'detached' });
        }
      }
    });

    test('a dialog closes with its view', async () => {
      await show('customers');
      await button('Make a key').click();
      await page.locator('dialog').waitFor();
      await page.evaluate("location.hash = '#/files'");
      await page.locator('dialog').waitFor({ state: 'detached' });
    });

    test('a new key is shown once: only its own button closes it, and it can be copied', async () => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await show('customers');
      await button('Make a key').click();
      await field('name').fill('Night desk');
      await page.locator('dialog input[name=subscriptions][value="7001"]').check();
      const posted = page.waitForRequest('**/operations/key-create');
      await page.locator('dialog button.main').click();
      const key = (await page.locator('dialog pre').textContent()) ?? '';
      await assertAccessible(page, 'a new key');
      for (let times = 0; times < 6; times += 1) await page.keyboard.press('Escape', { delay: 100 });
      // Only a page that has the focus may write to the clipboard.
      await page.bringToFront();
      await page.locator('dialog button.copy').click();
      await page.locator('dialog button.copy', { hasText: 'Copied' }).waitFor();
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), key);
      await page.locator('dialog button.main').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.equal(await page.locator('body', { hasText: key }).count(), 0);
      assert.equal(await statusOf(key), 200);
      const rights = { scopes: ['detections:read'], subscriptions: ['7001'] };
      const given = { account: 'agency', name: 'Night desk', ...rights };
      assert.deepEqual((await posted).postDataJSON(), given);
    });

    test('logging out ends the session', async () => {
      const reloaded = page.waitForEvent('load');
      await page.locator('button', { hasText: 'Log out' }).click();
      await reloaded;
      await page.locator('text=To log in').waitFor();
    });

    test('an ended session shows how to log in again, and nothing else', async () => {
      await show('customers');
      await page.locator('h2', { hasText: 'Agency' }).waitFor();
      appliance.cli(['console', '--end-all']);
      await page.locator('text=The session has ended.').waitFor();
      assert.equal(await page.locator('h2', { hasText: 'Agency' }).count(), 0);
      await assertAccessible(page, 'logged out');
    });

    test('a session survives a reload and holds in a second tab; other ports of the host receive nothing', async () => {
      const received: string[] = [];
      const thief = createServer(({ rawHeaders, url }, response) => {
        received.push(`${url} ${rawHeaders.join(' ')}`);
        response.setHeader('Content-Type', 'text/html');
        response.end('<img src="/icon.png"><body onload="saw = true">');
      });
      const port = await listen(thief);
      const { origin } = new URL(page.url());
      const kept = JSON.parse(await page.evaluate('JSON.stringify(localStorage)'));
      const [secret = ''] = Object.values(kept).map(String);
      assert.match(secret, /^[\w-]{32}$/);
      await page.reload();
      await page.locator('h1', { hasText: 'Overview' }).waitFor();
      const tab = await page.context().newPage();
      await tab.goto(`${origin}/`);
      await tab.locator('h1', { hasText: 'Overview' }).waitFor();
      await tab.goto(`http://127.0.0.1:${port}/`);
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
