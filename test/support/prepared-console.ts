/** The console's app in a real Chromium with prepared responses: a server and a page for each test of a suite. */
import { after, afterEach, before, beforeEach } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, type Watched, watchedPage } from './browser.ts';
import { busyResponses } from './console-responses.ts';
import { type ConsoleServer, startConsoleServer } from './console-server.ts';

export interface PreparedConsole {
  readonly server: ConsoleServer;
  readonly watched: Watched;
  readonly page: Page;
}

/** Call it within `describe`. @param onBegin called before each test with what it uses; the test does not close it */
export function prepareConsole(onBegin: (console: PreparedConsole) => void): void {
  let browser: Browser;
  let server: ConsoleServer;
  let watched: Watched;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser?.close());
  beforeEach(async () => {
    server = await startConsoleServer(busyResponses(Date.now()));
    watched = await watchedPage(browser);
    onBegin({ server, watched, page: watched.page });
  });
  afterEach(async () => {
    await watched.close();
    await server.close();
  });
}

/** Opens a view, and waits until it has been read. */
export async function openView(
  { server, page }: Pick<PreparedConsole, 'server' | 'page'>,
  view: string,
  heading: string,
): Promise<void> {
  await page.goto(`${server.url}/#/${view}`);
  await page.locator('h1', { hasText: heading }).waitFor();
  await page.locator('.reading').first().waitFor({ state: 'detached' });
}
