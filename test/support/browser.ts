/**
 * A real Chromium for the console's tests: WIREWATCH_TEST_BROWSER names it, otherwise it is searched on the PATH.
 * Without Chromium, these tests are skipped with a message.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { words } from './words.ts';

const NAMES = words('chromium chromium-browser google-chrome google-chrome-stable');
/** No GPU, no sandbox (tests run as root in containers), no network. */
const FLAGS = words(`
  --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
  --disable-component-update --disable-sync`);

/** Much longer than any step takes: only a failing test waits this long. */
const TIMEOUT_MS = 60_000;

const browserPath: string | null = findBrowser();

/** For `describe` and `test`: the reason to skip them; false if there is a browser. */
export const skip: string | false =
  browserPath === null && 'no Chromium on PATH: install one, or name it in WIREWATCH_TEST_BROWSER';

function findBrowser(): string | null {
  const named = process.env.WIREWATCH_TEST_BROWSER;
  if (named !== undefined && named !== '') return named;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync) ?? null;
}

/** Starts Chromium with an empty profile. */
export function launchBrowser(): Promise<Browser> {
  assert.ok(browserPath !== null);
  return chromium.launch({ executablePath: browserPath, headless: true, args: FLAGS, timeout: TIMEOUT_MS });
}

export type Watched = Awaited<ReturnType<typeof watchedPage>>;

/** Opens a page and records its errors, and the origins that get a request. */
export async function watchedPage(browser: Browser, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    // axe would check colours in the middle of a transition.
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const origins = new Set<string>();
  const errors: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin);
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  const close = async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
  };
  return { page, origins, errors, close };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Fails if axe-core finds something serious or critical in the page. */
export async function assertAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE);
  const violations: Violation[] = await page.evaluate(
    'axe.run(document).then((result) => result.violations)',
  );
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const shown = serious.map(({ id, nodes }) => {
    const some = nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary ?? ''}`);
    return `${id}: ${some.join('\n')}`;
  });
  assert.deepEqual(shown, [], `${what}: ${violations.map(({ id }) => id).join(', ')}`);
}

/** The contrast of the text of an element with what is behind it (WCAG 2.2, 1.4.3), in whatever state it is. */
export async function contrastOf(page: Page, selector: string): Promise<number> {
  await page.evaluate(AXE);
  const contrast = `const { getContrast, getBackgroundColor, getForegroundColor } = axe.commons.color;
    const element = document.querySelector(${JSON.stringify(selector)});
    axe.setup(document);
    const contrast = getContrast(getBackgroundColor(element), getForegroundColor(element));
    axe.teardown();`;
  return Number(await page.evaluate(`(() => { ${contrast} return contrast; })()`));
}
