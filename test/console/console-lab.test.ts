/** The console of a lab in a real Chromium: its clock, and its faults. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertAccessible, launchBrowser, skip, watchedPage } from '../support/browser.ts';
import { withLab } from '../support/lab.ts';

const LINK = /http:\S+#login=\S+/;

describe('the console of a lab', { skip }, () => {
  test('shows the clock and the faults', async () => {
    await withLab(['--seed', '7', '--clock', '2026-03-29T00:00Z'], async (lab) => {
      const browser = await launchBrowser();
      try {
        const link = await lab.run.until('the link', () => LINK.exec(lab.run.stdout())?.[0]);
        const { page, errors } = await watchedPage(browser);
        await page.goto(link);
        await page.locator('.tag', { hasText: 'lab' }).waitFor();
        await page.locator('nav a', { hasText: 'Lab' }).click();
        await page.locator('dd', { hasText: '2026-03-29 00:0' }).waitFor();
        await page.locator('.empty', { hasText: 'None.' }).waitFor();
        await assertAccessible(page, 'a lab without faults');

        const fault = { status: 429, retry_after: 7, endpoint: 'listChanges', times: 2 };
        const { id } = await lab.control('fault-add', fault);
        await page.locator('[aria-label=Faults] td', { hasText: '2 times left' }).waitFor();
        const refused = await lab.get('/v1/detections/changes?since=2026-03-28T00:00:00Z');
        assert.equal(refused.headers.get('x-wirewatch-lab'), id);
        await page.locator('[aria-label=Faults] td', { hasText: '1 time left' }).waitFor();

        await page.locator('button', { hasText: 'Move the clock' }).click();
        await page.locator('dialog input[name=advance]').fill('+26h');
        await assertAccessible(page, 'the form that moves the clock');
        await page.locator('dialog button.main').click();
        await page.locator('dd', { hasText: '2026-03-30 02:0' }).waitFor();
        await assertAccessible(page, 'a lab with faults');
        assert.equal(await page.locator('.failure').count(), 0);
        assert.deepEqual(errors, []);
      } finally {
        await browser.close();
      }
    });
  });
});
