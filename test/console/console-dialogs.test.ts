/** The dialogs of the console in a real Chromium: questions, results, buttons. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createKey } from '../support/appliance.ts';
import { assertAccessible, contrastOf, skip } from '../support/browser.ts';
import { type BusyConsole, prepareConsole } from '../support/busy-console.ts';
import type { ConsolePage } from '../support/console-page.ts';

describe('dialogs of the console in a browser', { skip }, () => {
  let { page, show, button, field, confirm, appliance } = {} as ConsolePage & BusyConsole;

  prepareConsole((opened) => {
    ({ page, show, button, field, confirm, appliance } = opened);
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
      for (const [opening, isGrave] of [
        ['Make a key', false],
        ['Revoke', true],
      ] as const) {
        await button(opening).first().click();
        for (const place of ['dialog footer button:not(.main)', 'dialog button.main']) {
          const pressed = page.locator(place);
          await pressed.waitFor();
          const what = `${opening}, ${place}, ${colorScheme}`;
          if (isGrave && place.endsWith('main')) {
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
    assert.equal((await appliance.get('/v1/me', key)).status, 200);
    assert.deepEqual((await posted).postDataJSON(), {
      account: 'agency',
      name: 'Night desk',
      scopes: ['detections:read'],
      subscriptions: ['7001'],
    });
  });
});
