/** The console in a real Chromium, on an installation with failed files and content of a hostile export. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type * as api from '../../src/admin/console/api.ts';
import { formatMs, HOUR_MS, WINDOW_MS } from '../../src/time.ts';
import { NOTHING_READ } from '../../src/windows/reach.ts';
import { assertAccessible, skip } from '../support/browser.ts';
import { type BusyConsole, FAILED, HOSTILE, PICTURE, prepareConsole } from '../support/busy-console.ts';
import { linkOf } from '../support/console-client.ts';
import { type ConsolePage, VIEWS } from '../support/console-page.ts';
import { fileName, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';

describe('the console in a browser', { skip }, () => {
  let { page, watched, show, answers, button, appliance, ids, failedMs } = {} as ConsolePage & BusyConsole;

  prepareConsole((opened) => {
    ({ page, watched, show, answers, button, appliance, ids, failedMs } = opened);
  });

  for (const view of [...VIEWS, 'detections/ID', 'manual/alerts'])
    test(`${view}: no serious axe finding, no error, no external request, and it fits`, async () => {
      await show(view.replace('ID', ids.hostile));
      for (const [width, colorScheme] of [
        [1280, 'light'],
        [800, null],
        [420, 'dark'],
      ] as const) {
        await page.setViewportSize({ width, height: 860 });
        if (colorScheme !== null) {
          await page.emulateMedia({ colorScheme });
          await assertAccessible(page, `${view} at ${width}, ${colorScheme}`);
        }
        const tooWide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        const overflow = Number(await page.evaluate(tooWide));
        assert.ok(overflow <= 0, `${view} at ${width} is ${overflow} pixels too wide`);
      }
      assert.deepEqual(watched.errors, []);
      assert.equal(watched.origins.size, 1);
    });

  test('content from exports is text: no element, no script, no direction override, no script link', async () => {
    const window = `windows?export=newswire&window=${formatMs(failedMs)}`;
    for (const view of ['detections?content_type=text', `detections/${ids.hostile}`, window]) {
      await show(view);
      const shown = page.locator('bdi', { hasText: '<img src=x onerror=' }).first();
      await shown.waitFor();
      const text = (await shown.textContent()) ?? '';
      assert.ok(text.length < HOSTILE.length, 'cut');
      assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069]/);
      assert.equal(await page.locator('#app img').count(), 0);
      assert.match(await page.title(), /Wirewatch/);
    }
    await answers<api.DetectionDetail>('detections/one', ({ current, ...answer }) => {
      const article = { ...current.article, url: 'javascript:alert(1)' };
      return { ...answer, current: { ...current, article } };
    });
    await show('overview');
    await show(`detections/${ids.hostile}`);
    await page.locator('dd', { hasText: 'javascript:alert(1)' }).waitFor();
    assert.equal(await page.locator('a[href^="javascript"]').count(), 0);
    assert.deepEqual(watched.errors, []);
  });

  test('the map works by keyboard: a window, a day, an open one; Enter opens it, Escape goes back', async () => {
    await show('windows');
    const cell = page.locator('[role=gridcell]:visible');
    const label = async () => (await page.locator('[role=gridcell]:focus').getAttribute('aria-label')) ?? '';
    const startOf = (text: string) => Date.parse(`${text.replace(/^\w+, (\S+) (\S+) to .*$/, '$1T$2')}:00Z`);
    await cell.focus();
    const first = startOf(await label());
    const moves = { ArrowLeft: -10, ArrowDown: -1440, ArrowRight: 10, ArrowUp: 1440, PageDown: -7 * 1440 };
    for (const [key, minutes] of Object.entries(moves)) {
      const from = startOf(await label());
      await page.keyboard.press(key);
      assert.equal(startOf(await label()) - from, minutes * 60_000, key);
    }
    assert.ok(startOf(await label()) < first);
    await page.keyboard.press('Home');
    assert.match(await label(), / 00:00 to 00:10 UTC/);
    await page.keyboard.press('End');
    assert.match(await label(), / 23:50 to 00:00 UTC/);
    await page.keyboard.press('n');
    assert.match(await label(), /: (failed|late|missing)/);
    const opened = await label();
    await page.keyboard.press('Enter');
    const dialog = page.locator('dialog.drawer');
    await dialog.waitFor();
    assert.equal(await page.locator('dialog.drawer :focus').count(), 1);
    assert.ok((await dialog.locator('h2').textContent())?.includes(opened.slice(0, 30)));
    await assertAccessible(page, 'a window');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await label(), opened);
  });

  test('the map names the window under the pointer, and a click opens it', async () => {
    await show('windows');
    const map = page.locator('.map svg[role=grid]:visible');
    await map.hover({ position: { x: 3, y: 40 } });
    const readout = (await page.locator('.readout:visible').textContent()) ?? '';
    assert.match(readout, /\d{4}-\d{2}-\d{2} 00:00 to 00:10 UTC/);
    await map.click({ position: { x: 3, y: 40 } });
    await page.locator('dialog.drawer h2', { hasText: '00:00 to 00:10 UTC' }).waitFor();
  });

  test('200 failed files are listed with their reasons, and each window with its action', async () => {
    await show('files');
    const files = page.locator('tbody tr', { hasText: 'expected a number from 0 to 100' });
    for (let rows = await files.count(); rows < FAILED; rows = await files.count()) {
      await page.locator('button', { hasText: 'Show more' }).click();
      await files.nth(rows).waitFor();
    }
    await show('windows');
    const reset = page.locator('button', { hasText: 'Reset' });
    await reset.filter({ hasText: `newswire, ${FAILED} windows` }).waitFor();
    await reset.last().click();
    await page.locator('dialog p', { hasText: 'is read' }).waitFor();
  });

  test('a list loads page by page; a failed page is retried', async () => {
    await show('overview');
    const after = /files\?after=b/;
    let all = 0;
    await answers<api.FilesPage>('files', ({ files: [first, ...rest] }) => {
      all = rest.length + 1;
      void page.route(after, (route) => route.fulfill({ json: { files: [first], next: null } }));
      void page.route(after, (route) => route.fulfill({ status: 503, json: {} }), { times: 1 });
      return { files: rest, next: 'b' };
    });
    await show('files');
    const rows = page.locator('main tbody > tr:has(button.file)');
    await page.locator('button', { hasText: 'Show more' }).click();
    await page.locator('[role=alert]', { hasText: '503' }).waitFor();
    assert.equal(await rows.count(), all - 1);
    await page.locator('button', { hasText: 'Try again' }).click();
    await page.locator('[role=alert]').waitFor({ state: 'detached' });
    assert.equal(await rows.count(), all);
    assert.equal(await page.locator('button', { hasText: 'Show more' }).count(), 0);
  });

  test('every view can be reached and left by keyboard', async () => {
    await page.keyboard.press('Tab');
    for (const view of new Set(VIEWS.slice(1).map((name) => name.replace(/[?/].*/, '')))) {
      const focused = async () =>
        `${await page.evaluate('document.activeElement.closest("nav a")?.textContent')}`.toLowerCase();
      for (let tabs = 0; !(await focused()).startsWith(view); tabs += 1) {
        assert.ok(tabs < 300, `${view} cannot be reached by keyboard`);
        await page.keyboard.press('Shift+Tab');
      }
      await page.keyboard.press('Enter');
      await page.locator('h1:focus', { hasText: new RegExp(view, 'i') }).waitFor();
    }
  });

  test('details of a file open below its row; of versions, only the changes can be shown', async () => {
    await show('files');
    await page.locator('tr', { hasText: 'failed' }).locator('button.file').first().click();
    await page.locator('tr.below', { hasText: 'a number from 0 to 100' }).waitFor();
    await show(`detections/${ids.hostile}`);
    const rows = page.locator('.versions tbody tr');
    const all = await rows.count();
    await page.locator('label', { hasText: 'Changes only' }).click();
    assert.ok((await rows.count()) < all);
    assert.equal(await rows.locator('.changed').count(), await page.locator('.changed').count());
  });

  test('the growth of the database fills the disk that it is on, not another', async () => {
    await answers<api.Overview>('overview', ({ disks, ...overview }) => {
      const full = disks.map((disk) => ({ ...disk, free_bytes: disk.of === 'data' ? 2 ** 50 : 0 }));
      return { ...overview, disks: full };
    });
    await page.reload();
    await page.locator('section[aria-label=Activity] button', { hasText: 'Machine' }).click();
    await page.locator('figcaption', { hasText: /Growth of .*: disk full in [1-9m]/ }).waitFor();
  });

  test('curves of exports, customers, keys and the machine, each with its table', async () => {
    const panel = page.locator('section[aria-label=Activity]');
    for (const [group, title, column] of [
      ['Exports', 'New detections, newswire', 'Detections'],
      ['Customers', 'Rows for Agency', 'Rows'],
      ['Keys', 'Requests, test', 'Refused'],
      ['Keys', 'Lag behind the stream, test', 'Behind'],
      ['Machine', 'Lag of the copy, and of standbys', 'Behind'],
      ['Machine', 'Growth of database and log', 'Growth'],
    ] as const) {
      await panel.locator('button', { hasText: group }).click();
      const curve = panel.locator('figure', { has: page.locator('h3', { hasText: title }) });
      await curve.locator('summary').click();
      assert.equal(await curve.locator('tbody tr').count(), 24, title);
      await curve.locator('th', { hasText: column }).waitFor();
    }
    const lag = panel.locator('figure', { hasText: 'Lag of the copy' });
    assert.ok((await lag.locator('td', { hasText: 'none' }).count()) > 0, 'before there was a copy');
    await assertAccessible(page, 'curves');
    const asked = page.waitForRequest(/trends\?days=90$/);
    await panel.locator('button', { hasText: 'Keys' }).click();
    await panel.locator('button', { hasText: '90 days' }).click();
    await asked;
  });

  /** Every window of newswire is done, but `overdue` since the newest one, and the last, which is not due yet. */
  async function showStanding(overdue: number, failed: number): Promise<void> {
    let newest_done: string | null = null;
    await answers<api.WindowMap>('windows', ({ at, from, exports: { newswire }, open }) => {
      const { length } = newswire.windows;
      const done = Math.floor((Date.parse(at) - Date.parse(from)) / WINDOW_MS) - overdue - 1;
      const windows = `${'d'.repeat(done)}${'w'.repeat(overdue)}`.padEnd(length, 'n');
      newest_done = formatMs(Date.parse(from) + done * WINDOW_MS);
      const imagewire = { enabled: false, windows: '-'.repeat(length), rows: [] };
      const exports = { newswire: { ...newswire, windows }, imagewire };
      return { at, from, exports, open: open.slice(0, failed) };
    });
    await answers<api.Overview>('overview', (overview) => {
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
    const unreadable = { status: 503, json: {} };
    await page.route(/\/console\/(windows|detections\/live)/, (route) => route.fulfill(unreadable));
    await answers<api.Overview>('overview', (overview) => {
      const nothing = { ...NOTHING_READ, enabled: true };
      const database = { ...overview.database, unreadable: 'it is damaged' };
      const exports = { newswire: nothing, imagewire: nothing };
      const scrub = { at: overview.at, findings: 0, not_compared: 'too little room' };
      return { ...overview, exports, database, scrub, keys: { ...overview.keys, behind: 0 } };
    });
    await page.reload();
    const warning = page.locator('[fill="var(--warning)"]');
    await page.locator('.state', { hasText: 'too little room', has: warning }).waitFor();
    for (const question of ['Is anything missing?', 'Who is behind?', 'Show me a detection'])
      await answer(question).filter({ hasText: 'Not known' }).waitFor();
    const done = /Nothing (is )?missing|Nobody is behind|No window has been|No file waits|No key has/;
    assert.doesNotMatch((await page.locator('main').textContent()) ?? '', done);
    await assertAccessible(page, 'unreadable');
  });

  test('what the audit trail lacks is said above what it has', async () => {
    const warning = 'number 2 cannot be shown';
    await answers<api.AuditPage>('history/audit', (trail) => ({ ...trail, warning }));
    await show('history');
    await page.locator('p', { hasText: warning }).waitFor();
    await page.locator('tbody tr').first().waitFor();
  });

  test("an article's picture is a link, which says why", async () => {
    await show(`detections/${ids.photo}`);
    await page.locator(`.pictures a[href="${PICTURE}"]`).waitFor();
    await page.locator('.pictures', { hasText: 'your browser would load it from the publisher' }).waitFor();
    await page.locator('img.photo.large').waitFor();
    assert.equal(watched.origins.size, 1);
  });

  test('a read-only session is shown no action', async () => {
    await page.goto(linkOf(appliance, '--read-only'));
    await page.locator('.foot', { hasText: 'read-only' }).waitFor();
    for (const view of ['overview', 'files', 'customers']) {
      await show(view);
      assert.equal(await button(/^(Pause|Resume|Replay|Make a key|Back up|Verify)/).count(), 0, view);
    }
  });

  /** Drops a file with a new detection. @returns its name */
  async function dropOne(): Promise<string> {
    const name = fileName('imagewire', nextWindowMs());
    await appliance.dropped(name, ndjson([newRow({ source_internal_id: 601 })]));
    return name;
  }

  test('it reads again what has changed, shows when it is disconnected, and catches up', async () => {
    await show('files');
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    await page.locator('tbody tr', { hasText: await dropOne() }).waitFor();
    await page.context().setOffline(true);
    await page.locator('.connection', { hasText: 'Not connected' }).waitFor();
    const name = await dropOne();
    await page.context().setOffline(false);
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    await page.locator('tbody tr', { hasText: name }).waitFor();
  });

  test('a hidden page asks for nothing, and catches up when visible', async () => {
    await page.clock.install();
    await page.reload();
    await show('files');
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    const see = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await see(true);
    let asked = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/console/changes')) asked += 1;
    });
    for (let seconds = 0; seconds < 4; seconds += 1) {
      await page.clock.runFor(1000);
      await page.evaluate("fetch('/')");
    }
    // One may have been on its way.
    assert.ok(asked <= 1);
    const name = await dropOne();
    await see(false);
    // What it asked at once may have come before the change was noted: then it asks again.
    await page.clock.resume();
    await page.locator('tbody tr', { hasText: name }).waitFor();
  });

  test('filters are in the URL', async () => {
    await show('detections');
    const asked = page.waitForRequest((request) => request.url().includes('domain'));
    await page.locator('label', { hasText: 'Domain' }).locator('input').fill('example.com');
    await page.keyboard.press('Enter');
    const { searchParams } = new URL((await asked).url());
    assert.equal(searchParams.get('domain'), 'example.com');
    assert.match(page.url(), /#\/detections\?domain=example\.com$/);
  });

  test('a search runs in steps, and shows how far it got', async () => {
    const since = formatMs(Date.now() - HOUR_MS);
    const changes = await appliance.get(`/v1/detections/changes?limit=20&since=${since}`);
    const { data: detections } = JSON.parse(await changes.text());
    const first = { detections, next: 'x', searched_to: '2026-01-02T00:00:00Z', total: null };
    const last = { detections: [], next: null, searched_to: null, total: null };
    await page.route(/detections\/search\?/, (route) =>
      route.fulfill({ json: route.request().url().includes('after=x') ? last : first }),
    );
    await show('detections?mode=search');
    await page.locator('.live-note', { hasText: 'Searched back to 2026-01-02' }).waitFor();
    await page.locator('button', { hasText: 'Continue the search' }).click();
    await page.locator('.live-note', { hasText: 'searched to its end' }).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 20);
  });

  test('a login link is redeemed and removed from the URL; a used one is refused with an explanation', async () => {
    const link = linkOf(appliance);
    await page.evaluate('localStorage.clear()');
    await page.goto('about:blank');
    const asked = ['changes', 'overview'].map((path) => page.waitForRequest(`**/console/${path}`));
    await page.goto(link);
    await page.locator('h1', { hasText: 'Overview' }).waitFor();
    const [changes, overview] = await Promise.all(asked);
    const secret = (await changes?.headerValue('authorization')) ?? '';
    assert.match(secret, /^Bearer [\w-]{32}$/);
    assert.equal(await overview?.headerValue('authorization'), secret);
    assert.doesNotMatch(page.url(), /login/);
    await page.evaluate('localStorage.clear()');
    await page.goto(link);
    await page.locator('[role=alert]', { hasText: 'used already' }).waitFor();
    await assertAccessible(page, 'a used link');
  });
});
