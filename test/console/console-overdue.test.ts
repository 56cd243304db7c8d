/** The console in a real Chromium: what is overdue and what cannot be known must not look like done. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Overview, WindowMap } from '../../src/admin/console/api.ts';
import { formatMs, WINDOW_MS } from '../../src/time.ts';
import { NOTHING_READ } from '../../src/windows/reach.ts';
import { assertAccessible, skip } from '../support/browser.ts';
import { type BusyConsole, prepareConsole } from '../support/busy-console.ts';
import type { ConsolePage } from '../support/console-page.ts';

describe('the console in a browser', { skip }, () => {
  let { page, watched, show, answers } = {} as ConsolePage & BusyConsole;

  prepareConsole((opened) => {
    ({ page, watched, show, answers } = opened);
  });

  /** Every window of newswire is done, but `overdue` since the newest one, and the last, which is not due yet. */
  async function showStanding(overdue: number, failed: number): Promise<void> {
    let newest_done: string | null = null;
    await answers<WindowMap>('windows', ({ at, from, exports: { newswire }, open }) => {
      const { length } = newswire.windows;
      const done = Math.floor((Date.parse(at) - Date.parse(from)) / WINDOW_MS) - overdue - 1;
      const windows = `${'d'.repeat(done)}${'w'.repeat(overdue)}`.padEnd(length, 'n');
      newest_done = formatMs(Date.parse(from) + done * WINDOW_MS);
      const imagewire = { enabled: false, windows: '-'.repeat(length), rows: [] };
      const exports = { newswire: { ...newswire, windows }, imagewire };
      return { at, from, exports, open: open.slice(0, failed) };
    });
    await answers<Overview>('overview', (overview) => {
      const not_read = { ...NOTHING_READ.not_read, failed };
      const newswire = { ...overview.exports.newswire, newest_done, not_read };
      return { ...overview, exports: { newswire, imagewire: { ...NOTHING_READ, enabled: false } } };
    });
  }

  const answer = (question: string) => page.locator('.tile', { hasText: question }).locator('.answer');

  for (const [overdue, failed, text, below] of [
    [11, 0, '11 windows overdue', 'newswire: 11 windows are due and not there yet.'],
    [1, 1, '1 window without data, 1 overdue', 'newswire: 1 window is due and not there yet.'],
    [0, 0, 'Nothing is missing', 'Every window that was due is done.'],
  ] as const)
    test(`${text}: in the overview and below the list of windows`, async () => {
      await showStanding(overdue, failed);
      await show('windows');
      await page.reload();
      const list = page.locator('section', { has: page.locator('h2', { hasText: 'Open windows' }) });
      await list.locator('p', { hasText: below }).waitFor();
      const isAllDone = /Every window that was due is done/.test((await list.textContent()) ?? '');
      assert.equal(isAllDone, overdue === 0);
      await show('overview');
      await page.reload();
      await answer('Is anything missing?').filter({ hasText: text }).waitFor();
      await assertAccessible(page, text);
      assert.deepEqual(watched.errors, []);
    });

  test('while the database cannot be read, nothing that depends on it counts as done', async () => {
    await page.route(/\/console\/(windows|detections\/live)/, (route) =>
      route.fulfill({ status: 503, json: {} }),
    );
    await answers<Overview>('overview', (overview) => {
      const nothing = { ...NOTHING_READ, enabled: true };
      const database = { ...overview.database, unreadable: 'it is damaged' };
      const exports = { newswire: nothing, imagewire: nothing };
      return { ...overview, exports, database, keys: { ...overview.keys, behind: 0 } };
    });
    await page.reload();
    for (const question of ['Is anything missing?', 'Who is behind?', 'Show me a detection'])
      await answer(question).filter({ hasText: 'Not known' }).waitFor();
    const text = (await page.locator('main').textContent()) ?? '';
    for (const claim of [
      /Nothing (is )?missing/,
      /Nobody is behind/,
      /No window has been/,
      /No file waits/,
      /No key has/,
    ])
      assert.doesNotMatch(text, claim);
    await assertAccessible(page, 'unreadable');
  });
});
