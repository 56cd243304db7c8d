/** A client of the change stream that records the page of each response by request id. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Page {
  /** The rows as received, separated by commas. */
  readonly rows: string;
  readonly cursor: string;
}

const LIMIT = 40;
const POLL_MS = 4;
const BEGIN = '{"data":[';
const END = '],"next_cursor"';

export class Follower {
  /** By request id. */
  readonly pages = new Map<string, Page>();
  readonly #key: string;
  #start: string;
  #url: string | null = null;
  #isOver = false;

  /** @param start the first parameter of the query: `since=…` or `cursor=…` */
  constructor(key: string, start: string) {
    this.#key = key;
    this.#start = start;
    void this.#follow();
  }

  /** Sets the appliance's address. @param url null: no appliance is running */
  at(url: string | null): void {
    this.#url = url;
  }

  stop(): void {
    this.#isOver = true;
  }

  /** Reads to the end of the stream. @returns the rows */
  static async readAll(url: string, key: string, start: string): Promise<string[]> {
    const rows: string[] = [];
    for (let next = start; ; ) {
      const answer = await ask(`${url}/v1/detections/changes?${next}&limit=1000`, key);
      if (answer === null) throw new Error('the change stream returned no page');
      if (answer.page.rows !== '') rows.push(answer.page.rows);
      if (!answer.hasMore) return rows;
      next = `cursor=${answer.page.cursor}`;
    }
  }

  async #follow(): Promise<void> {
    while (!this.#isOver) {
      const answer =
        this.#url === null
          ? null
          : await ask(`${this.#url}/v1/detections/changes?${this.#start}&limit=${LIMIT}`, this.#key);
      if (answer !== null && answer.page.rows !== '') {
        this.pages.set(answer.request, answer.page);
        this.#start = `cursor=${answer.page.cursor}`;
      }
      if (answer?.hasMore !== true) await sleep(POLL_MS);
    }
  }
}

/** @returns null if there is no page: the program has stopped, or is still starting */
async function ask(
  url: string,
  key: string,
): Promise<{ request: string; page: Page; hasMore: boolean } | null> {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    const body = await response.text();
    if (response.status !== 200) return null;
    const rows = body.slice(BEGIN.length, body.lastIndexOf(END));
    const { next_cursor, has_more } = JSON.parse(`{"x":[${body.slice(body.lastIndexOf(END))}`);
    const request = response.headers.get('x-request-id') ?? '';
    return { request, page: { rows, cursor: String(next_cursor) }, hasMore: has_more === true };
  } catch {
    return null;
  }
}
