/** The HTTP server on its own port, with databases that a test fills directly. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after } from 'node:test';
import { pino } from 'pino';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount } from '../../src/auth/accounts.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { ContentType } from '../../src/detection/content-type.ts';
import type { HealthSource } from '../../src/health/monitor.ts';
import { startServer } from '../../src/http/server.ts';
import type { ServerOptions } from '../../src/http/service.ts';
import { createWaiting } from '../../src/http/waiting.ts';
import { createDailyRows } from '../../src/limits/daily-rows.ts';
import { createKeyUses, createSeenKeys } from '../../src/limits/key-uses.ts';
import { openApiDocument } from '../../src/openapi/document.ts';
import { ACCESS_SCHEMA } from '../../src/store/access-schema.ts';
import { openDatabase } from '../../src/store/database.ts';
import { addTestKey, BOTH, type TestTerms } from './access.ts';
import { checkResponsesOf } from './checked-fetch.ts';
import { createTestStore } from './store.ts';

/** Without this, fetch requests a compressed response. */
export const PLAIN = { headers: { 'accept-encoding': 'identity' } };

export const NOW_MS = Date.parse('2026-11-21T12:00:00Z');
export const TEST_SECRET = Buffer.alloc(32, 7);

/** An `await using` declaration closes it. */
export type TestServer = Awaited<ReturnType<typeof startTestServer>>;

type Config = ServerOptions['config'];
type Given = Partial<
  Pick<ServerOptions, 'conditions' | 'health' | 'log' | 'metrics' | 'onEndLost' | 'times'>
>;

/** Settings of the sections `server` and `limits`, and what an appliance gives its server. */
export interface TestServerOptions extends Partial<Config['server']>, Partial<Config['limits']>, Given {
  /** The connections of which requests that wait may take a share; default: `max_connections`. */
  readonly waits_of?: number;
  /** Paths of PEM files. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** The photo folder; by default one that does not exist. */
  readonly photos?: string;
  readonly disabled?: readonly ContentType[];
}

const SERVER: Config['server'] = {
  host: '127.0.0.1',
  port: 0,
  base_url: '',
  trusted_proxies: [],
  tls_certificate: '',
  tls_key: '',
  compression: true,
  discovery: true,
  cors_origins: [],
  max_connections: 100,
  max_connections_per_address: 100,
};
const LIMITS: Config['limits'] = {
  requests_per_minute: 1_000_000,
  token_requests_per_minute: 1_000_000,
  unseen_key_ids_per_minute: 1_000_000,
  daily_rows: 1_000_000,
};
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
  const config = configOf(options);
  const store = createTestStore();
  const accessPath = join(store.folder, 'access.db');
  const access = openDatabase(accessPath, 'write', ACCESS_SCHEMA);
  addAccount(access, { id: 'agency', name: 'Agency' }, NOW_MS);
  for (const { id } of BOTH) addSubscription(access, { id, account_id: 'agency' }, NOW_MS);
  const reader = createAccessReader(accessPath);
  const lines: Record<string, unknown>[] = [];
  const dailyRows = createDailyRows();
  const keyUses = createKeyUses();
  const waiting = createWaiting(options.waits_of ?? config.server.max_connections);
  let nowMs = NOW_MS;
  const closeStores = () => {
    reader.close();
    access.close();
    store.close();
  };
  const running = await startServer({
    config,
    detections: () => store.reader,
    access: reader,
    health: options.health ?? HEALTHY,
    conditions: options.conditions ?? { set: () => {} },
    secret: TEST_SECRET,
    recentDeliveries: new Map(),
    onEndLost: options.onEndLost ?? (() => {}),
    openApi: (baseUrl) => JSON.stringify(openApiDocument(baseUrl)),
    waiting,
    dailyRows,
    keyUses,
    seenKeys: createSeenKeys(),
    metrics: options.metrics ?? null,
    log: options.log ?? pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) }),
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
    ...{ dailyRows, keyUses, waiting },
    setNow(ms: number): void {
      nowMs = ms;
    },
    /** Creates a key; by default for both subscriptions, with the scope detections:read. */
    makeKey: (terms?: TestTerms) =>
      addTestKey(access, NOW_MS, { name: 'test', subscriptions: BOTH, ...terms }),
    get,
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

function configOf({ tls, photos, disabled = [], ...given }: TestServerOptions): Config {
  const files = { tls_certificate: tls?.certificate ?? '', tls_key: tls?.key ?? '' };
  return {
    server: withGiven({ ...SERVER, ...files }, given),
    exports: {
      newswire: { enabled: !disabled.includes('text') },
      imagewire: { enabled: !disabled.includes('image') },
    },
    photos: { folder: photos ?? '/nonexistent/photos' },
    limits: withGiven(LIMITS, given),
  };
}

/** @param given may also have members of other sections */
function withGiven<Section extends object>(section: Section, given: object): Section {
  const own = Object.entries(given).filter(([name]) => name in section);
  return { ...section, ...Object.fromEntries(own) };
}
