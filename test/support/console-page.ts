/** The console of the real program in Chromium, as a person uses it. */
import type { Browser, Locator } from 'playwright-core';
import type { Appliance } from './appliance.ts';
import { watchedPage } from './browser.ts';
import { linkOf } from './console-client.ts';
import { words } from './words.ts';

/** The views that need no detection of the installation. */
export const VIEWS = words(
  'overview windows files customers detections detections?mode=search history manual',
);

export type ConsolePage = Awaited<ReturnType<typeof openConsolePage>>;

/** Opens a page with a new session, under the name kim. */
export async function openConsolePage(browser: Browser, appliance: Appliance, ...options: string[]) {
  const watched = await watchedPage(browser);
  const { page } = watched;
  await page.goto(linkOf(appliance, '--as', 'kim', ...options));
  await page.locator('h1', { hasText: 'Overview' }).waitFor();
  const show = async (view: string) => {
    await page.evaluate(`location.hash = '#/${view}'`);
    const title = view.split(/[?/]/)[0] ?? '';
    await page.locator('nav a[aria-current]', { hasText: new RegExp(`^${title}`, 'i') }).waitFor();
    await page.locator('.reading').first().waitFor({ state: 'detached' });
  };
  /** Clicks a button, fills in its form, and confirms. */
  const act = async (button: Locator, fill: () => Promise<void> = async () => {}) => {
    await button.first().click();
    await fill();
    await page.locator('dialog.question button.main').click();
  };
  /** A field of the open form. */
  const field = (name: string) => page.locator(`dialog.question [name=${name}]`);
  return {
    ...{ page, watched, show, act, field },
    /** Changes what the program answers to reads of a path, from the next one on. */
    answers: <Answer>(path: string, change: (answer: Answer) => unknown) =>
      page.route(
        ({ pathname }) => pathname === `/console/${path}`,
        async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: change(await response.json()) });
        },
      ),
    button: (text: string | RegExp) => page.locator('main button', { hasText: text }),
    /** Types the word that the open question asks for. */
    confirm: (word: string) =>
      page.locator('dialog.question label', { hasText: 'to confirm' }).locator('input').fill(word),
    /** Makes a key with the rights to a subscription. @returns the key, which is shown once */
    async makeKey(button: Locator, name: string, subscription: string): Promise<string> {
      await act(button, async () => {
        await field('name').fill(name);
        await page.locator(`dialog.question input[name=subscriptions][value="${subscription}"]`).check();
      });
      const key = (await page.locator('dialog pre').textContent()) ?? '';
      await page.locator('dialog button.main').click();
      return key;
    },
    /** The newest entries of the audit trail, as the view shows them. */
    async trail(): Promise<string> {
      await show('history');
      await page.locator('tbody tr').first().waitFor();
      return (await page.locator('tbody').textContent()) ?? '';
    },
  };
}
