/**
 * The console's app in a real Chromium, with prepared responses for a state that would take months to occur: 90 days
 * with 200 failed files, and content of a hostile export.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, skip, type Watched } from '../support/browser.ts';
import { busyResponses, HOSTILE } from '../support/console-responses.ts';
import type { ConsoleServer } from '../support/console-server.ts';
import { openView, prepareConsole } from '../support/prepared-console.ts';

const VIEWS = [
  ['overview', 'Overview'],
  ['windows', 'Windows'],
  ['files', 'Files'],
  ['customers', 'Customers'],
  ['detections', 'Detections'],
  ['detections?mode=search', 'Detections'],
  ['detections/t.7001.1000.50000', 'img src=x'],
  ['history', 'History'],
  ['manual', 'Manual'],
  ['manual/alerts', 'alerts'],
] as const;

describe('the console in a browser', { skip }, () => {
  let server: ConsoleServer;
  let watched: Watched;
  let page: Page;

  prepareConsole((opened) => {
    ({ server, watched, page } = opened);
  });

  const open = (view: string, heading: string) => openView({ server, page }, view, heading);

  for (const [view, heading] of VIEWS) {
    test(`${view}: no serious axe finding, no error, no external request, and it fits`, async () => {
      // Only 20 files: axe needs time for each row.
      const { files } = Object(server.responses['/console/files']);
      server.responses['/console/files'] = { files: files.slice(0, 20), next: null };
      for (const [width, colorScheme] of [
        [1280, 'light'],
        [800, null],
        [420, 'dark'],
      ] as const) {
        await page.setViewportSize({ width, height: 860 });
        await page.emulateMedia({ colorScheme: colorScheme ?? 'light' });
        await open(view, heading);
        if (colorScheme !== null) await assertAccessible(page, `${view} at ${width}, ${colorScheme}`);
        const overflow = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.ok(Number(overflow) <= 0, `${view} at ${width} is ${overflow} pixels too wide`);
      }
      assert.deepEqual(watched.errors, []);
      assert.deepEqual([...watched.origins], [server.url]);
    });
  }

  test('content from exports is text: no element, no script, no direction override, no script link', async () => {
    for (const view of [
      'detections',
      'detections/t.7001.1000.50000',
      'windows?export=newswire&window=2026-01-01T00:00:00Z',
    ]) {
      await open(view, view.startsWith('windows') ? 'Windows' : '');
      const shown = page.locator('bdi', { hasText: '<img src=x onerror=' }).first();
      await shown.waitFor();
      const text = (await shown.textContent()) ?? '';
      assert.ok(text.length < HOSTILE.length, 'cut');
      assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069]/);
    }
    assert.equal(await page.locator('#app img').count(), 0);
    assert.match(await page.title(), /Wirewatch/);
    await open('detections/t.7001.1000.50000', 'img');
    assert.equal(await page.locator('a[href^="javascript"]').count(), 0);
    assert.deepEqual(watched.errors, []);
    assert.deepEqual([...watched.origins], [server.url]);
  });

  test('the map works by keyboard: a window, a day, an open one; Enter opens it, Escape goes back', async () => {
    await open('windows', 'Windows');
    const cell = page.locator('[role=gridcell]:visible');
    const label = async () => (await page.locator('[role=gridcell]:focus').getAttribute('aria-label')) ?? '';
    const startOf = (text: string) => Date.parse(`${text.replace(/^\w+, (\S+) (\S+) to .*$/, '$1T$2')}:00Z`);
    await cell.focus();
    const first = startOf(await label());
    for (const [key, minutes] of [
      ['ArrowLeft', -10],
      ['ArrowDown', -1440],
      ['ArrowRight', 10],
      ['ArrowUp', 1440],
      ['PageDown', -7 * 1440],
    ] as const) {
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
    assert.match(await label(), /: (failed|missing|abandoned|a file is held)/);
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
    await open('windows', 'Windows');
    const map = page.locator('.map svg[role=grid]:visible');
    await map.hover({ position: { x: 3, y: 40 } });
    assert.match(
      (await page.locator('.readout:visible').textContent()) ?? '',
      /\d{4}-\d{2}-\d{2} 00:00 to 00:10 UTC/,
    );
    await map.click({ position: { x: 3, y: 40 } });
    await page.locator('dialog.drawer h2', { hasText: '00:00 to 00:10 UTC' }).waitFor();
  });

  test('200 failed files are listed with their reasons, and each window with its action', async () => {
    await open('files', 'Files');
    assert.equal(await page.locator('tbody tr', { hasText: 'expected a number from 0 to 100' }).count(), 200);
    await open('windows', 'Windows');
    await page.locator('button', { hasText: 'Reset' }).first().click();
    await page.locator('dialog p', { hasText: 'is read' }).waitFor();
  });

  test('a list loads page by page; a failed page is retried', async () => {
    const all = Object(server.responses['/console/files']);
    const [first, ...rest] = all.files;
    server.responses['/console/files'] = { files: rest, next: 'b' };
    await open('files', 'Files');
    server.responses['/console/files'] = { files: [first], next: null };
    await page.route('**/console/files?after=b', (route) => route.fulfill({ status: 503, json: {} }), {
      times: 1,
    });
    await page.locator('button', { hasText: 'Show more' }).click();
    await page.locator('[role=alert]', { hasText: '503' }).waitFor();
    assert.equal(await page.locator('main tbody > tr:has(button.file)').count(), rest.length);
    await page.locator('button', { hasText: 'Try again' }).click();
    await page.locator('[role=alert]').waitFor({ state: 'detached' });
    assert.equal(await page.locator('main tbody > tr:has(button.file)').count(), all.files.length);
    assert.equal(await page.locator('button', { hasText: 'Show more' }).count(), 0);
  });

  test('every view can be reached and left by keyboard', async () => {
    await open('overview', 'Overview');
    await page.keyboard.press('Tab');
    for (const [, heading] of VIEWS.filter(([view]) => /^[a-z]+$/.test(view)).slice(1)) {
      const focused = async () =>
        `${await page.evaluate('document.activeElement.closest("nav a")?.textContent')}`;
      for (let tabs = 0; !(await focused()).startsWith(heading); tabs += 1) {
        assert.ok(tabs < 300, `${heading} cannot be reached by keyboard`);
        await page.keyboard.press('Shift+Tab');
      }
      await page.keyboard.press('Enter');
      await page.locator('h1', { hasText: heading }).waitFor();
      await page.locator('h1:focus').waitFor();
    }
  });

  test('details of a file open below its row; of versions, only the changes can be shown', async () => {
    await open('files', 'Files');
    await page.locator('button.file').first().click();
    await page.locator('tr.below', { hasText: 'a number from 0 to 100' }).waitFor();
    await open('detections/t.7001.1000.50000', '');
    const rows = page.locator('.versions tbody tr');
    const all = await rows.count();
    await page.locator('label', { hasText: 'Changes only' }).click();
    assert.ok((await rows.count()) < all);
    assert.equal(await rows.locator('.changed').count(), await page.locator('.changed').count());
  });

  test('curves of exports, customers, keys and the machine, each with its table', async () => {
    await open('overview', 'Overview');
    const panel = page.locator('section[aria-label=Activity]');
    for (const [group, title, column] of [
      ['Exports', 'New detections, newswire', 'Detections'],
      ['Customers', 'Rows for Nordpresse', 'Rows'],
      ['Keys', 'Requests, Rights desk', 'Refused'],
      ['Keys', 'Lag behind the stream, Rights desk', 'Behind'],
      ['Machine', 'Lag of the copy, and of standbys', 'Behind'],
      ['Machine', 'Growth of database and log', 'Growth'],
    ] as const) {
      await panel.locator('button', { hasText: group }).click();
      const curve = panel.locator('figure', { has: page.locator('h3', { hasText: title }) });
      await curve.locator('summary').click();
      assert.equal(await curve.locator('tbody tr').count(), 24, title);
      await curve.locator('th', { hasText: column }).waitFor();
    }
    assert.equal(
      await panel
        .locator('figure', { hasText: 'Lag of the copy' })
        .locator('td', { hasText: 'none' })
        .count(),
      6,
    );
    await assertAccessible(page, 'curves');
    const asked = page.waitForRequest(/trends\/keys\?days=90$/);
    await panel.locator('button', { hasText: 'Keys' }).click();
    await panel.locator('button', { hasText: '90 days' }).click();
    await asked;
  });

  test("an article's picture is a link, which says why", async () => {
    const one = Object(server.responses['/console/detections/one']);
    const image_url = 'https://publisher.example/picture.jpg';
    const { current } = one;
    server.responses['/console/detections/one'] = {
      ...one,
      current: {
        ...current,
        source: { ...current.source, image_url: `${server.url}/photos/1?signature=x` },
        article: { ...current.article, image_url },
      },
    };
    await open('detections/t.7001.1000.50000', '');
    await page.locator(`.pictures a[href="${image_url}"]`).waitFor();
    await page.locator('.pictures', { hasText: 'your browser would load it from the publisher' }).waitFor();
    assert.deepEqual([...watched.origins], [server.url]);
  });

  test('a read-only session is shown no action', async () => {
    server.responses['/console/session'] = {
      ...Object(server.responses['/console/session']),
      read_only: true,
    };
    server.responses['/console/operations'] = { operations: [] };
    for (const view of ['overview', 'files', 'customers']) {
      await open(view, '');
      const made = page.locator('button', { hasText: /^(Pause|Resume|Replay|Make a key|Back up|Verify)/ });
      assert.equal(await made.count(), 0, view);
    }
  });

  test('it reads again what has changed, shows when it is disconnected, and catches up', async () => {
    await open('files', 'Files');
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    server.responses['/console/files'] = { files: [], next: null };
    server.change('windows');
    await page.locator('.empty', { hasText: 'No such file.' }).waitFor();
    server.refuseChanges(true);
    await page.locator('.connection', { hasText: 'Not connected' }).waitFor();
    server.responses['/console/files'] = busyResponses(Date.now())['/console/files'];
    server.refuseChanges(false);
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    await page.locator('tbody tr', { hasText: 'newswire' }).first().waitFor();
  });

  test('a hidden page asks for nothing, and catches up when visible', async () => {
    await page.clock.install();
    await open('files', 'Files');
    await page.locator('.connection', { hasText: 'Live' }).waitFor();
    const see = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await see(true);
    const asked = server.asked();
    for (let seconds = 0; seconds < 4; seconds += 1) {
      await page.clock.runFor(1000);
      await page.evaluate("fetch('/')");
    }
    // One may have been on its way.
    assert.ok(server.asked() <= asked + 1);
    server.responses['/console/files'] = { files: [], next: null };
    server.change('windows');
    await see(false);
    await page.locator('.empty', { hasText: 'No such file.' }).waitFor();
  });

  test('filters are in the URL', async () => {
    await open('detections', 'Detections');
    const asked = page.waitForRequest((request) => request.url().includes('domain'));
    await page.locator('label', { hasText: 'Domain' }).locator('input').fill('example.com');
    await page.keyboard.press('Enter');
    const { searchParams } = new URL((await asked).url());
    assert.equal(searchParams.get('domain'), 'example.com');
    assert.match(page.url(), /#\/detections\?domain=example\.com$/);
  });

  test('new versions appear on top of the live stream', async () => {
    await open('detections', 'Detections');
    const row = page.locator('tbody tr');
    await row.first().waitFor();
    const live = Object(server.responses['/console/detections/live']);
    const [, second] = live.detections;
    server.responses['/console/detections/live'] = {
      ...live,
      detections: [{ ...second, id: 't.7001.9.9', version: 7 }, ...live.detections],
    };
    server.change('detections');
    await row.first().locator('text=t.7001.9.9').waitFor();
  });

  test('a search runs in steps, and shows how far it got', async () => {
    await open('detections?mode=search', 'Detections');
    await page.locator('.live-note', { hasText: 'Searched back to' }).waitFor();
    server.responses['/console/detections/search'] = {
      detections: [],
      next: null,
      searched_to: null,
      total: null,
    };
    await page.locator('button', { hasText: 'Continue the search' }).click();
    await page.locator('.live-note', { hasText: 'searched to its end' }).waitFor();
    assert.equal(await page.locator('tbody tr').count(), 30);
  });

  test('a login link is redeemed and removed from the URL; a used one is refused with an explanation', async () => {
    server.results['/console/session'] = { status: 200, body: { secret: 'one.two' } };
    const asked = ['changes', 'overview'].map((path) => page.waitForRequest(`**/console/${path}`));
    await page.goto(`${server.url}/#login=abc`);
    await page.locator('h1', { hasText: 'Overview' }).waitFor();
    for (const read of await Promise.all(asked))
      assert.equal(await read.headerValue('authorization'), 'Bearer one.two', read.url());
    assert.deepEqual(server.posted.at(-1), { path: '/console/session', body: { token: 'abc' } });
    assert.doesNotMatch(page.url(), /abc/);
  });

  test('a refused log-out says why, and the session goes on', async () => {
    await open('overview', 'Overview');
    const detail = 'access.db is in use by another process. Try again in a moment.';
    server.results['/console/session/end'] = { status: 409, body: { detail } };
    await page.locator('button', { hasText: 'Log out' }).click();
    await page.locator('header [role=alert]', { hasText: detail }).waitFor();
    await assertAccessible(page, 'a refused log-out');
    server.results['/console/session/end'] = { status: 200, body: { text: 'The session has ended.' } };
    const reloaded = page.waitForEvent('load');
    await page.locator('button', { hasText: 'Log out' }).click();
    await reloaded;
  });

  test('an ended session shows how to log in again, and nothing else', async () => {
    await open('customers', 'Customers');
    delete server.responses['/console/customers'];
    server.results['/console/session/end'] = { status: 200, body: {} };
    await page.route('**/console/**', (route) =>
      route.fulfill({ status: 401, json: { title: 'Unauthorized', detail: 'there is no session' } }),
    );
    server.change('customers');
    await page.locator('text=The session has ended.').waitFor();
    assert.equal(await page.locator('text=Rights desk').count(), 0);
    await assertAccessible(page, 'logged out');
  });
});
