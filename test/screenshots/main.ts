/**
 * `npm run screenshots`: takes screenshots of the console with the demonstration's data, as PNG files in
 * dist/screenshots/: each view at 420, 800, 1,280 and 2,560 pixels, light and dark. With --whole, down to the end of the page;
 * with --readme, also updates the picture in README.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { DAY_MS, formatWindowStart, WINDOW_MS } from '../../src/time.ts';
import { putFile } from '../support/appliance.ts';
import { launchBrowser, skip, watchedPage } from '../support/browser.ts';
import { VIEWS } from '../support/console-page.ts';
import { type Demonstration, startDemonstration } from '../support/demonstration.ts';
import { Follower, getAs } from '../support/followers.ts';

const ROOT = path.join(import.meta.dirname, '..', '..');
const FOLDER = path.join(ROOT, 'dist', 'screenshots');
const README_PICTURE = path.join(ROOT, 'src', 'manual', 'console.png');
const SIZES = [
  { width: 420, height: 900 },
  { width: 800, height: 900 },
  { width: 1280, height: 860 },
  { width: 2560, height: 1300 },
];
const SCHEMES = ['light', 'dark'] as const;
/** Time for a view to load and render its data. */
const SETTLE_MS = 1500;
/** How many times the demonstration's clients poll, so that the console has data about them. */
const POLLS = 5;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { readme: { type: 'boolean', default: false }, whole: { type: 'boolean', default: false } },
  });
  if (skip !== false) throw new Error(skip);
  const demo = await startDemonstration();
  const browser = await launchBrowser();
  try {
    await liveALittle(demo);
    const { page, close } = await watchedPage(browser);
    await page.goto(demo.shown.console);
    await page.locator('h1', { hasText: 'Overview' }).waitFor();
    mkdirSync(FOLDER, { recursive: true });
    const more = ['detections?content_type=image', `detections/${demo.shown.detection?.id}`, 'manual/alerts'];
    for (const view of [...VIEWS, ...more]) await shoot(page, view, values.whole);
    await close();
  } finally {
    await browser.close();
    await demo.stop();
  }
  if (values.readme) copyFileSync(path.join(FOLDER, 'overview-1280-light.png'), README_PICTURE);
  console.log(`Screenshots are in ${path.relative(process.cwd(), FOLDER)}.`);
}

/** Creates states worth showing: a client follows the stream, another stops, and a file fails. */
async function liveALittle({ drop, shown: { url, keys } }: Demonstration): Promise<void> {
  const window = Math.floor((Date.now() - 2 * DAY_MS) / WINDOW_MS) * WINDOW_MS;
  putFile(
    drop,
    `newswire.${formatWindowStart(window)}.ndjson`,
    '{"subscription_id": 7001, "strength_score": "high"}\n',
  );
  for (const [index, { key }] of keys.entries()) {
    const client = new Follower();
    for (let poll = 0; poll < (index === 0 ? POLLS : 1); poll += 1)
      await client.follow(
        getAs(() => ({ url }), key),
        1,
      );
  }
}

async function shoot(page: Page, view: string, fullPage: boolean): Promise<void> {
  const name = view.replace(/\/[ti]\..*/, '-one').replaceAll(/[^a-z]+/g, '-');
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const size of SIZES) {
      await page.setViewportSize(size);
      await page.evaluate(`location.hash = '#/'; location.hash = '#/${view}'`);
      await wait(SETTLE_MS);
      await page.screenshot({
        path: path.join(FOLDER, `${name}-${size.width}-${colorScheme}.png`),
        fullPage,
      });
    }
  }
}

await main();
