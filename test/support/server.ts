/** The HTTP server on its own port, with databases that a test fills directly. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { after } from 'node:test';
import { pino } from 'pino';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount } from '../../src/auth/accounts.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { ContentType } from '../../src/detection/content-type.ts';
import type { Conditions } from '../../src/health/alert-conditions.ts';
import type { HealthSource } from '../../src/health/monitor.ts';
import type { ConnectionTimes } from '../../src/http/listener.ts';
import type { RequestMetrics } from '../../src/http/request-metrics.ts';
import { type ServerOptions, startServer } from '../../src/http/server.ts';
import { createWaiting } from '../../src/http/waiting.ts';
import { createDailyRows } from '../../src/limits/daily-rows.ts';
import { createKeyUses, createSeenKeys } from '../../src/limits/key-uses.ts';
import type { StreamPosition } from '../../src/log/version-epoch.ts';
import type { Logger } from '../../src/logger.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { addTestKey, type TestTerms } from './access.ts';
import { checkResponsesOf } from './checked-fetch.ts';
import { createTestStore } from './store.ts';

/** Without this, fetch requests a compressed response. */
export const PLAIN = { headers: { 'accept-encoding': 'identity' } };

export const NOW_MS = Date.parse('2026-11-21T12:00:00Z');
const BOTH = [7001, 7002].map((id) => ({ id, content_types: null }));
export const TEST_SECRET = Buffer.alloc(32, 7);

/** An `await using` declaration closes it. */
export type TestServer = Awaited<ReturnType<typeof startTestServer>>;

export interface TestServerOptions {
  /** The connections of which requests that wait may take a share; default: `max_connections`. */
  waits_of?: number;
  readonly base_url?: string;
  readonly host?: string;
  readonly trusted_proxies?: string[];
  readonly cors_origins?: string[];
  /** Default: true. */
  readonly discovery?: boolean;
  readonly max_connections?: number;
  readonly max_connections_per_address?: number;
  /** Paths of PEM files. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  readonly onEndLost?: (cursor: StreamPosition) => void;
  readonly conditions?: Pick<Conditions, 'set'>;
  readonly metrics?: RequestMetrics;
  /** By default always healthy. */
  readonly health?: HealthSource;
  /** The photo folder; by default one that does not exist. */
  readonly photos?: string;
  readonly requests_per_minute?: number;
  readonly token_requests_per_minute?: number;
  readonly unseen_key_ids_per_minute?: number;
  readonly daily_rows?: number;
  readonly port?: number;
  readonly disabled?: readonly ContentType[];
  readonly times?: ConnectionTimes;
  /** By default a logger that writes to `lines`. */
  readonly log?: Logger;
}

const HEALTHY: HealthSource = {
  health: () => ({
    status: 'ok',
    exports: { newswire: { newest_done: null }, imagewire: { newest_done: null } },
    alerts: { open: 0, page_worthy: 0, paused: 0 },
    role: 'writer',
  }),
  noteFault: () => {},
};

export async function startTestServer(options: TestServerOptions = {}) {
  const store = createTestStore();
  const accessPath = join(store.folder, 'access.db');
  const access = createAccess(accessPath);
  const reader = createAccessReader(accessPath);
  const lines: Record<string, unknown>[] = [];
  const recentDeliveries = new Map<number, number>();
  const dailyRows = createDailyRows();
  const keyUses = createKeyUses();
  const waiting = createWaiting(options.waits_of ?? configOf(options).server.max_connections);
  let nowMs = NOW_MS;
  const closeStores = () => {
    reader.close();
    access.close();
    store.close();
  };
  const running = await startServer({
    config: configOf(options),
    detections: () => store.reader,
    access: reader,
    health: options.health ?? HEALTHY,
    conditions: options.conditions ?? { set: () => {} },
    secret: TEST_SECRET,
    recentDeliveries,
    onEndLost: options.onEndLost ?? (() => {}),
    openApi: (baseUrl) => JSON.stringify(openApiDocument(baseUrl)),
    waiting,
    dailyRows,
    keyUses,
    seenKeys: createSeenKeys(),
    metrics: options.metrics ?? null,
    log: options.log ?? pino({ base: null }, logCollector(lines)),
    now: () => nowMs,
    ...(options.times === undefined ? {} : { times: options.times }),
  }).catch((error: unknown) => {
    closeStores();
    throw error;
  });
  checkResponsesOf(running.url);
  const close = async () => {
    await running.close(1000);
    closeStores();
  };
  let delivered = 0;
  function get(path: string, key?: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...init.headers };
    return fetch(`${running.url}${path}`, { ...init, headers });
  }
  return {
    url: running.url,
    port: Number(new URL(running.url).port),
    store,
    /** Writer on access.db: account `agency` with subscriptions 7001 and 7002. */
    access,
    running,
    /** The log lines, oldest first. */
    lines,
    ...{ recentDeliveries, dailyRows, keyUses, waiting },
    /** Sets the clock. */
    setNow(ms: number): void {
      nowMs = ms;
    },
    /** Creates a key; by default for both subscriptions, with the scope detections:read. */
    makeKey: (terms?: TestTerms) =>
      addTestKey(access, NOW_MS, { name: 'test', subscriptions: BOTH, ...terms }),
    get,
    /** The status of a response. */
    async statusOf(...asked: Parameters<typeof get>): Promise<number> {
      const response = await get(...asked);
      await response.arrayBuffer();
      return response.status;
    },
    /** The body of a response that must have this status. */
    async json(path: string, key?: string, status = 200) {
      const response = await get(path, key);
      const text = await response.text();
      assert.equal(response.status, status, `${path}: ${text}`);
      return JSON.parse(text);
    },
    /** Delivers one new detection, and wakes waiting requests as the ingest thread does. */
    deliverOne(subscription_id = 7001, row: object = {}): void {
      delivered += 1;
      const own = { subscription_id, article_id: delivered, ...row };
      store.deliver([{ content_type: 'text', version: 1, row: own }], NOW_MS);
      waiting.changed();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A server for all tests of the file that calls this at its top; it closes after them. */
export async function sharedServer(options?: TestServerOptions): Promise<TestServer> {
  const server = await startTestServer(options);
  after(server.close);
  return server;
}

function createAccess(path: string): Database {
  const access = openDatabase(path, 'write', ACCESS_SCHEMA);
  addAccount(access, { id: 'agency', name: 'Agency', daily_rows: null }, NOW_MS);
  for (const id of [7001, 7002]) {
    addSubscription(
      access,
      { id, account_id: 'agency', name: null, time_zone: 'UTC', content_types: ['text', 'image'] },
      NOW_MS,
    );
  }
  return access;
}

function configOf(options: TestServerOptions): ServerOptions['config'] {
  const isEnabled = (type: ContentType) => options.disabled?.includes(type) !== true;
  return {
    server: {
      host: options.host ?? '127.0.0.1',
      port: options.port ?? 0,
      base_url: options.base_url ?? '',
      trusted_proxies: options.trusted_proxies ?? [],
      tls_certificate: options.tls?.certificate ?? '',
      tls_key: options.tls?.key ?? '',
      compression: true,
      discovery: options.discovery ?? true,
      cors_origins: options.cors_origins ?? [],
      max_connections: options.max_connections ?? 100,
      max_connections_per_address: options.max_connections_per_address ?? 100,
    },
    exports: { newswire: { enabled: isEnabled('text') }, imagewire: { enabled: isEnabled('image') } },
    photos: { folder: options.photos ?? '/nonexistent/photos' },
    limits: {
      requests_per_minute: options.requests_per_minute ?? 1_000_000,
      token_requests_per_minute: options.token_requests_per_minute ?? 1_000_000,
      unseen_key_ids_per_minute: options.unseen_key_ids_per_minute ?? 1_000_000,
      daily_rows: options.daily_rows ?? 1_000_000,
    },
  };
}

function logCollector(lines: Record<string, unknown>[]): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
}
