/** The dialogs of the console's app in a real Chromium, with prepared responses: questions, results, buttons. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, contrastOf, skip } from '../support/browser.ts';
import { type ConsoleServer, OUTCOME } from '../support/console-server.ts';
import { openView, prepareConsole } from '../support/prepared-console.ts';

describe('dialogs of the console in a browser', { skip }, () => {
  let server: ConsoleServer;
  let page: Page;

  prepareConsole((opened) => {
    ({ server, page } = opened);
  });

  const open = (view: string, heading: string) => openView({ server, page }, view, heading);

  test('an action asks once, says what will happen, sends its body, and shows the outcome', async () => {
    await open('customers', 'Customers');
    const revoke = page.locator('button', { hasText: 'Revoke' }).first();
    await revoke.click();
    await page.locator('dialog p', { hasText: 'cannot be undone' }).waitFor();
    await assertAccessible(page, 'a question');
    await page.locator('dialog button', { hasText: 'Cancel' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(server.posted, []);
    await revoke.click();
    server.results['/operations/key-revoke'] = {
      status: 409,
      body: { detail: 'the key is revoked already' },
    };
    await page.locator('dialog label', { hasText: 'to confirm' }).locator('input').fill('abcdefghij22');
    await page.locator('dialog button.main').click();
    await page.locator('dialog [role=alert]', { hasText: 'the key is revoked already' }).waitFor();
    server.results['/operations/key-revoke'] = {
      status: 200,
      body: { ...OUTCOME, done: 'Revoked the key.' },
    };
    await page.locator('dialog button.main').click();
    await page.locator('[role=status]', { hasText: 'Revoked the key.' }).waitFor();
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(server.posted.at(-1), {
      path: '/operations/key-revoke',
      body: { id: 'abcdefghij22' },
    });
  });

  test('the text of buttons can be read in every state and both themes', async () => {
    await open('customers', 'Customers');
    const read = async (button: string, what: string) => {
      const contrast = await contrastOf(page, button);
      assert.ok(contrast >= 4.5, `${what}: ${contrast.toFixed(2)}`);
    };
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const [opening, isGrave] of [
        ['Make a key', false],
        ['Revoke', true],
      ] as const) {
        await page.locator('button', { hasText: opening }).first().click();
        for (const place of ['dialog footer button:not(.main)', 'dialog button.main']) {
          const button = page.locator(place);
          await button.waitFor();
          const what = `${opening}, ${place}, ${colorScheme}`;
          if (isGrave && place.endsWith('main')) {
            await read(place, `${what}, disabled`);
            await page
              .locator('dialog label', { hasText: 'to confirm' })
              .locator('input')
              .fill('abcdefghij22');
          }
          await read(place, what);
          await button.focus();
          await read(place, `${what}, focus`);
          await button.hover();
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
    await open('customers', 'Customers');
    await page.locator('button', { hasText: 'Make a key' }).click();
    await page.locator('dialog').waitFor();
    await page.evaluate("location.hash = '#/files'");
    await page.locator('dialog').waitFor({ state: 'detached' });
  });

  test('a new key is shown once: only its own button closes it, and it can be copied', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const key = 'wirewatch_live_abcdefghij22secret';
    server.results['/operations/key-create'] = {
      status: 200,
      body: { ...OUTCOME, value: { id: 'abc', key }, done: 'Made.' },
    };
    await open('customers', 'Customers');
    await page.locator('button', { hasText: 'Make a key' }).click();
    await page.locator('dialog input[name=name]').fill('Night desk');
    await page.locator('dialog input[name=subscriptions][value="7001"]').check();
    await page.locator('dialog button.main').click();
    await page.locator('dialog pre', { hasText: key }).waitFor();
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
    assert.deepEqual(server.posted.at(-1)?.body, {
      account: 'agency',
      name: 'Night desk',
      scopes: ['detections:read'],
      subscriptions: ['7001'],
    });
  });
});
