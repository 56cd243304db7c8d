/** What requests are answered with: the stores and limits of the appliance, and what the server makes of its settings. */
import type { AccessReader } from '../auth/access-reader.ts';
import { createAccessTokens } from '../auth/token.ts';
import type { ExportSwitches } from '../config/load.ts';
import type { Settings } from '../config/schema.ts';
import { CONTENT_TYPES, TYPE_RULES } from '../detection/content-type.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { HealthSource } from '../health/monitor.ts';
import { createDailyAllowance, type DailyRows } from '../limits/daily-rows.ts';
import type { KeyUses, SeenKeys } from '../limits/key-uses.ts';
import { createRequestRate, createTokenRate } from '../limits/request-rate.ts';
import type { Logger } from '../logger.ts';
import { createQueryCursors, createStreamCursors, type StreamPosition } from '../query/cursors.ts';
import type { RecentDeliveries } from '../query/delivery.ts';
import { deriveKey } from '../seal.ts';
import type { Database } from '../store/database.ts';
import type { Now } from '../time.ts';
import { createClientAddress, createProxyWarning } from './client-address.ts';
import { createCors } from './cors.ts';
import { createEncoder, type Encoder } from './encoding.ts';
import type { Interventions } from './exchange.ts';
import { createFaultLog, createStrangerLog } from './line-limit.ts';
import { CONNECTION_TIMES, type ConnectionTimes } from './listener.ts';
import { createPageTurns } from './page-turns.ts';
import type { RequestMetrics } from './request-metrics.ts';
import type { Waiting } from './waiting.ts';

export interface ServerOptions {
  readonly config: ExportSwitches & Pick<Settings, 'server' | 'limits' | 'photos'>;
  readonly detections: () => Database;
  readonly access: AccessReader;
  readonly conditions: Pick<Conditions, 'set'>;
  readonly health: HealthSource;
  readonly secret: Buffer;
  /** Delivery times that are not in the database yet. */
  readonly recentDeliveries: RecentDeliveries;
  readonly dailyRows: DailyRows;
  readonly keyUses: Pick<KeyUses, 'note'>;
  readonly seenKeys: SeenKeys;
  /** Called for an authentic cursor beyond the log's end, which proves that its end is lost. */
  readonly onEndLost: (cursor: StreamPosition) => void;
  readonly waiting: Waiting;
  readonly openApi: (baseUrl: string) => string;
  readonly metrics: RequestMetrics | null;
  readonly interventions?: Interventions;
  readonly times?: ConnectionTimes;
  readonly log: Logger;
  readonly now: Now;
}

export type Service = ReturnType<typeof createService>;

export function createService(options: ServerOptions) {
  const { config, secret, seenKeys, log } = options;
  const { server, limits, photos, exports } = config;
  const encode: Encoder = server.compression ? createEncoder() : (answer) => answer;
  let document = '';
  return {
    times: CONNECTION_TIMES,
    ...options,
    /** Without one in the settings, the address of the listener, once it listens. */
    baseUrl: server.base_url,
    isClosing: false,
    /** Those whose export is switched on. */
    enabledContentTypes: new Set(CONTENT_TYPES.filter((type) => exports[TYPE_RULES[type].export].enabled)),
    openApi: (baseUrl: string) => (document ||= options.openApi(baseUrl)),
    tokens: createAccessTokens(secret),
    streamCursors: createStreamCursors(secret),
    queryCursors: createQueryCursors(secret),
    photos: { folder: photos.folder, key: deriveKey(secret, 'photo') },
    allowance: createDailyAllowance(options.dailyRows, limits.daily_rows),
    rate: createRequestRate(limits.requests_per_minute),
    tokenRate: createTokenRate(limits.token_requests_per_minute, seenKeys),
    /**
     * Limits requests with key ids that an address has not used recently: guessing keys does not reach the database. A key
     * id that was proven from an address within a day is not counted there, so clients that share the address with a
     * guesser keep working.
     */
    unseen: createRequestRate(limits.unseen_key_ids_per_minute),
    clientAddress: createClientAddress(server.trusted_proxies, createProxyWarning(options.conditions)),
    cors: createCors(server.cors_origins),
    turns: createPageTurns(),
    encode,
    faults: createFaultLog(log),
    strangers: createStrangerLog(log),
  };
}
