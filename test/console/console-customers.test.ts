/** The console in a real Chromium on the real program: accounts, subscriptions and keys, from their forms to the API. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { type Appliance, showLogOfFailures, startAppliance } from '../support/appliance.ts';
import { assertAccessible, launchBrowser, skip } from '../support/browser.ts';
import { type ConsolePage, openConsolePage } from '../support/console-page.ts';
import { freePort } from '../support/free-port.ts';

describe('the customers of the real program, in a browser', { skip }, () => {
  let browser: Browser;
  let appliance: Appliance;
  let { page, watched, show, act, button, field, confirm, makeKey, trail } = {} as ConsolePage;
  showLogOfFailures(() => appliance?.serving());

  before(async () => {
    browser = await launchBrowser();
    appliance = await startAppliance({ WIREWATCH_ADMIN_PORT: `${await freePort()}` });
  });
  after(async () => {
    await browser?.close();
    await appliance?.stop();
  });
  beforeEach(async () => {
    ({ page, watched, show, act, button, field, confirm, makeKey, trail } = await openConsolePage(
      browser,
      appliance,
    ));
  });
  afterEach(() => watched?.close());

  test('a key is created, works, is rotated and revoked', async () => {
    await show('customers');
    const first = await makeKey(button('Make a key'), 'Night desk', '7001');
    assert.equal((await appliance.get('/v1/me', first)).status, 200);
    const lineOf = (key: string) => page.locator('tbody tr', { hasText: key.split('_')[2] ?? '' });
    await act(lineOf(first).locator('button', { hasText: 'Rotate' }), async () => {
      await field('overlap').fill('0');
    });
    const second = (await page.locator('dialog pre').textContent()) ?? '';
    await page.locator('dialog button.main').click();
    assert.deepEqual(
      [(await appliance.get('/v1/me', first)).status, (await appliance.get('/v1/me', second)).status],
      [401, 200],
    );
    await act(lineOf(second).locator('button', { hasText: 'Revoke' }), () =>
      confirm(second.split('_')[2] ?? ''),
    );
    await page.locator('.said', { hasText: /revoked/i }).waitFor();
    assert.equal((await appliance.get('/v1/me', second)).status, 401);
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
      assert.match(await shown(), /^wirewatch subscription add 7101 --account acme --content-types text\s*$/);
    });
    await panel.locator('tr', { hasText: '7101' }).waitFor();
    const key = await makeKey(panel.locator('button', { hasText: 'Make a key' }), 'Desk', '7101');
    assert.equal((await appliance.get('/v1/me', key)).status, 200);

    await act(panel.locator('tr', { hasText: 'Desk' }).locator('button', { hasText: 'Change' }), async () => {
      await field('name').fill('Night desk');
      await field('daily_rows').fill('5000');
      assert.match(
        await shown(),
        /^wirewatch key set [a-z2-7]{12} --name 'Night desk' --daily-rows 5000\s*$/,
      );
    });
    await panel.locator('tr', { hasText: 'Night desk' }).waitFor();
    // No box of the form says this: a change of something else must not take it away.
    appliance.cli(['key', 'set', key.split('_')[2] ?? '', '--subscriptions', '7101:text']);
    await panel.locator('tr', { hasText: '7101:text' }).waitFor();
    await act(
      panel.locator('tr', { hasText: 'Night desk' }).locator('button', { hasText: 'Change' }),
      async () => {
        assert.equal(await field('daily_rows').inputValue(), '5000');
        await field('daily_rows').fill('');
        assert.match(await shown(), /^wirewatch key set [a-z2-7]{12} --daily-rows none\s*$/);
      },
    );
    await panel.locator('header button', { hasText: 'Change' }).click();
    await field('name').fill('');
    await page.locator('dialog.question button.main').click();
    await page.locator('dialog.question [role=alert]').waitFor();
    await page.keyboard.press('Escape');

    await act(panel.locator('tr', { hasText: '7101' }).locator('button', { hasText: 'Remove' }), async () => {
      await page.locator('dialog.question p', { hasText: 'This cannot be undone' }).waitFor();
      assert.ok(await page.locator('dialog.question button.main').isDisabled());
      await confirm('7101');
    });
    await panel.locator('.empty', { hasText: 'No subscription yet' }).waitFor();
    await act(panel.locator('header button', { hasText: 'Remove' }), () => confirm('acme'));
    await panel.waitFor({ state: 'detached' });
    assert.equal((await appliance.get('/v1/me', key)).status, 401);
    assert.match(await trail(), /account remove/);
    // The empty name was refused.
    assert.equal(watched.errors.filter((text) => !text.includes('400 (Bad Request)')).length, 0);
  });
});
