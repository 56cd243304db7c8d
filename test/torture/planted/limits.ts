/** Off by one at each limit of the contract. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LIMIT_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('limits/api-limits.ts', 'parameters', {
    'PAGE_ROWS_MAX = [-1000-]{+1001+}': 'limit is at most 1000',
    'SUBSCRIPTIONS_MAX = [-4-]{+5+};': 'four subscriptions',
    'SINCE_AGE_MAX_MS = 31 * DAY_MS{+ + 1+};': 'since is at most 31 x 24 hours ago',
  }),
  ...faultsIn('limits/api-limits.ts', 'stream-rules', {
    'STREAMS_MAX = [-20-]{+21+};': 'a request reads 20 streams',
  }),
  ...faultsIn('limits/api-limits.ts', 'period-parameters', {
    'PERIOD_DAYS_MAX = [-31-]{+32+};': '31 calendar days',
    'SHARDS_MAX = [-64-]{+65+};': '64 shards',
  }),
  ...faultsIn('limits/api-limits.ts', 'token-refusal', {
    'TOKEN_BODY_BYTES_MAX = [-4096-]{+4097+};': '4,096 bytes of a token request',
  }),
  ...faultsIn('limits/api-limits.ts', 'me', {
    'DATA_GAPS_MAX = [-200-]{+201+};': 'at most 200 gaps',
  }),
  ...faultsIn('limits/api-limits.ts', 'limits', {
    'RATE_WINDOW_MS = MINUTE_MS{+ - 1000+};': 'requests are counted by the minute',
  }),
  ...faultsIn('limits/request-rate.ts', 'limits', {
    'window.count <{+=+} limit': 'the limit of requests per minute',
  }),
  ...faultsIn('limits/daily-rows.ts', 'limits', {
    '(dayOf(nowMs) + 1) * DAY_MS{+ + 1+}': 'an allowance resets at midnight',
  }),
  ...faultsIn('limits/daily-rows.ts', 'limits-http', {
    'usedByKey <{+=+} ofKey': 'a used-up allowance of a key is refused',
  }),
  ...faultsIn('appliance.ts', 'usage', {
    'createSeenKeys([-stored.seen-])': 'networks are known after a restart',
  }),
  ...faultsIn('http/connections.ts', 'connection-limit', {
    '[-waiting.set(connection, null);-]': 'a connection that sends nothing makes room',
  }),
];
