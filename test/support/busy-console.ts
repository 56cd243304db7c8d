/** The console of an installation that has something to show: 90 days of windows, failed ones, a hostile export. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach } from 'node:test';
import type { Browser } from 'playwright-core';
import type { Trends } from '../../src/admin/console/api.ts';
import { DAY_MS, formatMs, HOUR_MS, WINDOW_MS } from '../../src/time.ts';
import { samplePhoto } from '../../src/tools/generate/photo.ts';
import { startAppliance } from './appliance.ts';
import { launchBrowser } from './browser.ts';
import { openConsole } from './console-client.ts';
import { type ConsolePage, openConsolePage } from './console-page.ts';
import { fileName, idOf, ndjson, newRow, newRows, nextWindowMs } from './export-files.ts';
import { freePort } from './free-port.ts';
import { testFolder } from './test-folder.ts';
import { until } from './until.ts';

/** Markup, characters that change the text direction, and thousands of further characters. */
export const HOSTILE = `<img src=x onerror="document.title='taken'">\u202Egnp.exe\u2066 ${'long '.repeat(600)}`;
const DAYS = 89;
/** So many windows of newswire have failed, the newest of all. */
export const FAILED = 200;
export const PICTURE = 'https://publisher.example/picture.jpg';

export type BusyConsole = Awaited<ReturnType<typeof startBusyConsole>>;

async function startBusyConsole() {
  const appliance = await startAppliance({
    WIREWATCH_ADMIN_PORT: `${await freePort()}`,
    WIREWATCH_COPY_TO: join(testFolder(), 'copy'),
  });
  const hostile = newRow({ article_headline: HOSTILE, source_language: 'en' });
  const photo = newRow({ source_internal_id: 601, article_image_url: PICTURE });
  const photos = join(appliance.data, 'photos');
  mkdirSync(photos, { recursive: true });
  writeFileSync(join(photos, '601.png'), samplePhoto(601));

  const firstMs = Math.floor((Date.now() - DAYS * DAY_MS) / WINDOW_MS) * WINDOW_MS;
  const seenIn = (windowMs: number) => ({
    first_detected_at: formatMs(windowMs),
    last_scored_at: formatMs(windowMs),
  });
  const many = newRows(30, { article_headline: 'A quiet day', ...seenIn(firstMs) });
  await appliance.dropped(fileName('newswire', firstMs), ndjson(many));
  await appliance.dropped(fileName('imagewire', firstMs), '');
  for (const strength_score of [20, 50, 80]) {
    const windowMs = nextWindowMs();
    const scored = { ...hostile, strength_score, last_scored_at: formatMs(windowMs) };
    await appliance.dropped(fileName('newswire', windowMs), ndjson([scored]));
  }
  await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson([photo]));
  const failing = Array.from({ length: FAILED }, nextWindowMs);
  const failedMs = failing.at(-1) ?? 0;
  for (const windowMs of failing) {
    const strength_score = windowMs === failedMs ? HOSTILE : 'high';
    appliance.put(fileName('newswire', windowMs), ndjson([newRow({ strength_score, ...seenIn(windowMs) })]));
  }
  for (const windowMs of failing) await appliance.processed(fileName('newswire', windowMs));

  const since = formatMs(Date.now() - HOUR_MS);
  await appliance.get(`/v1/detections/changes?limit=1&since=${since}`);
  await appliance.get('/v1/detections/changes');
  const ui = await openConsole(appliance);
  await until('counts of a key and of the copy', async () => {
    const { keys, machine } = await ui.get<Trends>('trends');
    return keys.length > 0 && machine.lag_seconds.some((seconds) => seconds !== null);
  });
  return { appliance, failedMs, ids: { hostile: idOf(hostile), photo: idOf(photo, 'imagewire') } };
}

/** Call it within `describe`. @param onBegin called before each test with its page, which the test does not close */
export function prepareConsole(onBegin: (console: ConsolePage & BusyConsole) => void): void {
  let browser: Browser;
  let busy: BusyConsole;
  let opened: ConsolePage;
  before(async () => {
    [browser, busy] = await Promise.all([launchBrowser(), startBusyConsole()]);
  });
  after(async () => {
    await browser?.close();
    await busy?.appliance.stop();
  });
  beforeEach(async () => {
    opened = await openConsolePage(browser, busy.appliance);
    onBegin({ ...opened, ...busy });
  });
  afterEach(() => opened?.watched.close());
}
