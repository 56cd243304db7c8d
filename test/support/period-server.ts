/** A server with detections of several days, and requests to its period endpoint. */
import assert from 'node:assert/strict';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { ContentType } from '../../src/detection/content-type.ts';
import { NOW_MS, startTestServer } from './server.ts';
import type { TestRow } from './store.ts';

export const MINUTE_MS = 60_000;
export const DAYS = 'from=2026-11-18&to=2026-11-21';

export function row(
  content_type: ContentType,
  id: number,
  first_detected_at: string,
  more: TestRow['row'] = {},
): TestRow {
  return { content_type, version: 1, row: { source_internal_id: id, first_detected_at, ...more } };
}

/** Subscriptions 7001 to 7004 and 8001; the key reads the first two. */
export async function startPeriodServer() {
  const server = await startTestServer({ base_url: 'https://api.example/ww' });
  server.store.deliver(
    [
      row('text', 1, '2026-11-18T10:00:00Z'),
      row('text', 2, '2026-11-19T10:00:00Z'),
      { ...row('text', 2, '2026-11-19T10:00:00Z', { strength_score: 96 }), version: 2 },
      row('image', 3, '2026-11-19T10:00:00Z'),
      row('text', 4, '2026-11-19T23:30:00Z', { subscription_id: 7002 }),
      row('text', 5, '2026-11-20T10:00:00Z', { subscription_id: 9009 }),
      row('text', 6, '2026-11-20T23:59:59Z'),
      row('text', 7, '2026-11-21T12:00:00Z'),
    ],
    NOW_MS - MINUTE_MS,
  );
  server.store.finishWindow('newswire', NOW_MS - 20 * MINUTE_MS);
  server.store.finishWindow('imagewire', NOW_MS - 30 * MINUTE_MS);
  const account_id = 'agency';
  addSubscription(server.access, { account_id, id: 7003, time_zone: 'Europe/Berlin' }, NOW_MS);
  addSubscription(server.access, { account_id, id: 7004 }, NOW_MS);
  addSubscription(server.access, { account_id, id: 8001, content_types: ['text'] }, NOW_MS);
  server.store.deliver(
    [
      row('text', 8, '2026-11-19T22:59:59Z', { subscription_id: 7003 }),
      row('text', 9, '2026-11-19T23:00:00Z', { subscription_id: 7003 }),
    ],
    NOW_MS - MINUTE_MS,
  );
  const { key } = server.makeKey();
  return {
    ...{ server, key },
    async period(query: string, withKey = key): Promise<Page> {
      const response = await server.get(`/v1/detections?${query}`, withKey);
      const text = await response.text();
      assert.equal(response.status, 200, `${query}: ${text}`);
      return JSON.parse(text);
    },
    /** @returns the detail */
    async refusal(query: string, withKey = key): Promise<string> {
      const response = await server.get(`/v1/detections?${query}`, withKey);
      const text = await response.text();
      assert.equal(response.status, 400, `${query}: ${text}`);
      assert.ok(response.headers.has('ratelimit-limit'));
      const problem = JSON.parse(text);
      assert.equal(problem.title, 'Invalid request');
      return problem.detail;
    },
  };
}

export interface Page {
  readonly data: { readonly id: string; readonly version: number; readonly event?: string }[];
  readonly next_cursor: string | null;
  readonly has_more: boolean;
  readonly from: string;
  readonly to: string;
  readonly time_zone: string;
  readonly as_of: string | null;
}

export const idsOf = (page: Page) => page.data.map(({ id }) => id);
