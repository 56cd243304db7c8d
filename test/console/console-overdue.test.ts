/** The console in a real Chromium: what is overdue and what cannot be known must not look like done. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Overview, WindowMap } from '../../src/admin/console/api.ts';
import { formatMs, WINDOW_MS } from '../../src/time.ts';
import { NOTHING_READ } from '../../src/windows/reach.ts';
import { assertAccessible, skip, type Watched } from '../support/browser.ts';
import type { ConsoleServer } from '../support/console-server.ts';
import { prepareConsole } from '../support/prepared-console.ts';

describe('the console in a browser', { skip }, () => {
  let server: ConsoleServer;
  let watched: Watched;
  let page: Page;
  let map: WindowMap;
  let overview: Overview;

  prepareConsole((opened) => {
    ({ server, watched, page } = opened);
    map = Object(server.responses['/console/windows']);
    overview = Object(server.responses['/console/overview']);
  });

  /** Every window is done, but `overdue` since the newest one, and the last, which is not due yet. */
  function showStanding(overdue: number, failed: number): void {
    const ended = Math.floor((Date.parse(map.at) - Date.parse(map.from)) / WINDOW_MS);
    const done = ended - overdue - 1;
    const windows = `${'d'.repeat(done)}${'w'.repeat(overdue)}`.padEnd(
      map.exports.newswire.windows.length,
      'n',
    );
    const off = { enabled: false, windows: '-'.repeat(windows.length), rows: [] };
    const state = {
      ...overview.exports.newswire,
      newest_done: formatMs(Date.parse(map.from) + done * WINDOW_MS),
      not_read: { ...NOTHING_READ.not_read, failed },
    };
    server.responses['/console/windows'] = {
      ...map,
      exports: { newswire: { ...map.exports.newswire, windows }, imagewire: off },
      open: map.open.slice(0, failed),
    };
    server.responses['/console/overview'] = {
      ...overview,
      exports: { newswire: state, imagewire: { ...state, ...NOTHING_READ, enabled: false } },
    };
  }

  const answer = (question: string) => page.locator('.tile', { hasText: question }).locator('.answer');
  const show = (view: string) => page.goto(`${server.url}/#/${view}`);

  test('windows that are due and not there yet are named, in the overview and below the list', async () => {
    for (const [overdue, failed, text, below] of [
      [11, 0, '11 windows overdue', 'newswire: 11 windows are due and not there yet.'],
      [1, 1, '1 window without data, 1 overdue', 'newswire: 1 window is due and not there yet.'],
      [0, 0, 'Nothing is missing', 'Every window that was due is done.'],
    ] as const) {
      showStanding(overdue, failed);
      await show('overview');
      await answer('Is anything missing?').filter({ hasText: text }).waitFor();
      await assertAccessible(page, text);
      await show('windows');
      const list = page.locator('section', { has: page.locator('h2', { hasText: 'Open windows' }) });
      await list.locator('p', { hasText: below }).waitFor();
      const isAllDone = /Every window that was due is done/.test((await list.textContent()) ?? '');
      assert.equal(isAllDone, overdue === 0);
      await page.goto('about:blank');
    }
    assert.deepEqual(watched.errors, []);
  });

  test('while the database cannot be read, nothing that depends on it counts as done', async () => {
    for (const path of ['windows', 'detections/live']) delete server.responses[`/console/${path}`];
    const state = { ...overview.exports.newswire, ...NOTHING_READ };
    server.responses['/console/overview'] = {
      ...overview,
      exports: { newswire: state, imagewire: state },
      database: { ...overview.database, unreadable: 'it is damaged' },
      keys: { ...overview.keys, behind: 0 },
    } satisfies Overview;
    await show('overview');
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
