/** The console of the demonstration in a real Chromium: its first screens, and those of a lab. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { HOUR_MS } from '../../src/time.ts';
import { assertAccessible, launchBrowser, skip, type Watched, watchedPage } from '../support/browser.ts';
import { type Demonstration, startDemonstration } from '../support/demonstration.ts';
import { until } from '../support/until.ts';

describe('the console of the demonstration', { skip }, () => {
  let browser: Browser;
  let demo: Demonstration;
  let watched: Watched;

  before(async () => {
    [browser, demo] = await Promise.all([launchBrowser(), startDemonstration()]);
    watched = await watchedPage(browser);
    await watched.page.goto(demo.shown.console);
  });
  after(async () => {
    await browser?.close();
    await demo?.stop();
  });

  test('the first screen answers the four questions', async () => {
    const { page } = watched;
    for (const answer of ['Nothing is missing', 'Nobody is behind', 'Nothing'])
      await page.locator('.tile .answer', { hasText: answer }).first().waitFor();
    await page.locator('.tile', { hasText: 'Show me a detection' }).click();
    await page.locator('h2', { hasText: 'What was found' }).waitFor();
    await page.goBack();
    await page.locator('.tag', { hasText: 'demo' }).waitFor();
  });

  test('photos are seen, small in lists and large where one is the subject', async () => {
    const { page } = watched;
    const isDrawn = (look: string) => async () =>
      Number(await page.evaluate(`document.querySelector('img.photo.${look}')?.naturalWidth`)) > 0;
    await page.evaluate("location.hash = '#/detections?content_type=image'");
    await page.locator('img.photo.small').first().waitFor();
    await until('a thumbnail', isDrawn('small'));
    await page.locator('.title').first().click();
    await page.locator('img.photo.large').waitFor();
    await until('the picture', isDrawn('large'));
    const path = await page.locator('img.photo.large').getAttribute('src');
    const forged = new URL(`${path?.slice(0, -2)}aa`, demo.shown.console);
    assert.equal((await fetch(forged)).status, 404, 'without its signature');
  });

  test('the stream updates itself', async () => {
    const { page } = watched;
    await page.evaluate("location.hash = '#/detections'");
    const first = page.locator('tbody tr').first();
    const before = await first.textContent();
    await until('a new version', async () => (await first.textContent()) !== before);
  });

  test('a fault is added, met and counted; the clock is moved', async () => {
    const { page, errors } = watched;
    await page.evaluate("location.hash = '#/lab'");
    await page.locator('.empty', { hasText: 'None.' }).waitFor();
    await assertAccessible(page, 'a lab without faults');
    await page.locator('button', { hasText: 'Add a fault' }).click();
    await page.locator('dialog [name=status]').selectOption('429');
    await page.locator('dialog [name=times]').fill('2');
    await page.locator('dialog button.main').click();
    const faults = page.locator('[aria-label=Faults] td');
    await faults.filter({ hasText: '2 times left' }).waitFor();
    const { url, keys } = demo.shown;
    const headers = { authorization: `Bearer ${keys[0]?.key}` };
    assert.equal((await fetch(`${url}/v1/me`, { headers })).status, 429);
    await faults.filter({ hasText: '1 time left' }).waitFor();

    const clock = async () => Date.parse(`${await page.locator('dd').first().textContent()}Z`);
    const before = await clock();
    await page.locator('button', { hasText: 'Move the clock' }).click();
    await page.locator('dialog input[name=advance]').fill('+26h');
    await assertAccessible(page, 'the form that moves the clock');
    await page.locator('dialog button.main').click();
    await until('the next day', async () => (await clock()) - before >= 26 * HOUR_MS);
    await assertAccessible(page, 'a lab with faults');
    assert.equal(await page.locator('.failure').count(), 0);
    assert.deepEqual(errors, []);
  });
});
