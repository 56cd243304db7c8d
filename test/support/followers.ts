/** Clients that follow the change stream and keep a copy, as the contract requires. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import type { ChangesPage, Detection } from './appliance.ts';

const TIMEOUT_MS = 60_000;

/** Sends a request to the current appliance. */
export type Get = (path: string) => Promise<ChangesPage>;

/**
 * Requests of a client with a key, which throw an AssertionError if there is no page.
 *
 * @param serving the current appliance
 * @param retries how many 5xx are no error: while a database is made anew, the contract tells clients to retry
 */
export function getAs(
  serving: () => { readonly url: string } | null,
  key: string,
  { headers = {}, retries = 0 }: { headers?: Readonly<Record<string, string>>; retries?: number } = {},
): Get {
  return async (path) => {
    for (let tries = 0; ; tries += 1) {
      const all = { authorization: `Bearer ${key}`, ...headers };
      const response = await fetch(`${serving()?.url}${path}`, { headers: all });
      const text = await response.text();
      if (response.status === 200) return JSON.parse(text);
      assert.ok(response.status >= 500 && tries < retries, `${path}: ${response.status} ${text}`);
      await sleep(50);
    }
  };
}

/** Keeps a copy as the contract requires: never replaces a version by an older one. */
export class Follower {
  readonly copy = new Map<string, Detection>();
  readonly #limit: number;
  /** The start of its next request. At first, a time before any that a test's wrong clock shows. */
  position: string;

  constructor(limit = 1000) {
    this.#limit = limit;
    this.position = `since=${formatMs(Date.now() - 3 * HOUR_MS)}`;
  }

  /** Reads to the current end, or at most `pagesMax` pages. */
  async follow(get: Get, pagesMax = Number.POSITIVE_INFINITY): Promise<void> {
    for (let pages = 0; pages < pagesMax; pages += 1) {
      const page = await get(`/v1/detections/changes?${this.position}&limit=${this.#limit}`);
      for (const { event: _, ...row } of page.data) {
        const known = this.copy.get(row.id);
        if (known === undefined || row.version > known.version) this.copy.set(row.id, row);
      }
      this.position = `cursor=${page.next_cursor}`;
      if (!page.has_more) return;
    }
  }
}

/** A new client that has read to the current end. */
export async function fresh(get: Get): Promise<Follower> {
  const client = new Follower();
  await client.follow(get);
  return client;
}

const content = ({ version: _, exported_at: __, ...shown }: Detection) => JSON.stringify(shown);

/** @returns the first error in a copy; null: none */
function mismatchOf({ copy }: Follower, { copy: server }: Follower): string | null {
  for (const [id, row] of server) {
    const own = copy.get(id);
    if (own === undefined) return `${id} was skipped`;
    if (own.last_scored_at < row.last_scored_at)
      return `${id}: the copy has version ${own.version}, which is older than version ${row.version}`;
    if (own.last_scored_at === row.last_scored_at && content(own) !== content(row))
      return `${id}: versions ${own.version} and ${row.version} differ`;
  }
  return null;
}

/** Follows until all copies equal a new client's; a lost end is repaired only after a poll proves it. */
export async function settle(followers: readonly Follower[], get: Get): Promise<Follower> {
  for (const untilMs = performance.now() + TIMEOUT_MS; ; await sleep(50)) {
    for (const follower of followers) await follower.follow(get);
    const client = await fresh(get);
    const faults = followers.flatMap((follower) => mismatchOf(follower, client) ?? []);
    if (faults.length === 0) return client;
    assert.ok(performance.now() < untilMs, faults.join('; '));
  }
}
