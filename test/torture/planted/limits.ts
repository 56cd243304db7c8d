/** Off by one at each limit of the contract. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LIMIT_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('limits/contract-limits.ts', 'parameters', {
    'PAGE_ROWS_MAX = [-1000-]{+1001+}': 'limit is at most 1000',
    'SUBSCRIPTIONS_MAX = [-4-]{+5+};': 'four subscriptions',
    'SINCE_AGE_MAX_MS = 31 * DAY_MS{+ + 1+};': 'since is at most 31 x 24 hours ago',
  }),
  ...faultsIn('limits/contract-limits.ts', 'stream-rules', {
    'STREAMS_MAX = [-20-]{+21+};': 'a request reads 20 streams',
  }),
  ...faultsIn('limits/contract-limits.ts', 'period-parameters', {
    'PERIOD_DAYS_MAX = [-31-]{+32+};': '31 calendar days',
    'SHARDS_MAX = [-64-]{+65+};': '64 shards',
  }),
  ...faultsIn('limits/contract-limits.ts', 'token-refusal', {
    'TOKEN_BODY_BYTES_MAX = [-4096-]{+4097+};': '4,096 bytes of a token request',
  }),
  ...faultsIn('limits/contract-limits.ts', 'me', {
    'DATA_GAPS_MAX = [-200-]{+201+};': 'at most 200 gaps',
  }),
  ...faultsIn('limits/contract-limits.ts', 'limits', {
    'RATE_WINDOW_MS = MINUTE_MS{+ - 1000+};': 'requests are counted by the minute',
  }),
  ...faultsIn('query/changes-parameters.ts', 'parameters', {
    'if (sinceMs >{+=+} nowMs) throw': 'since may be now',
    'if ([-given !== null && since !== null-]{+false+})': 'since and cursor exclude each other',
  }),
  ...faultsIn('query/common-parameters.ts', 'parameters', {
    'integer([-1-]{+0+}, PAGE_ROWS_MAX)': 'limit is at least 1',
  }),
  ...faultsIn('query/value-kinds.ts', 'parameters', {
    '[-[...any]-]{+any+}.length > maxLength': 'characters are counted, not UTF-16 code units',
  }),
  ...faultsIn('query/period.ts', 'period-parameters', {
    'Math.floor([-(to_ms - 1)-]{+to_ms+} / DAY_MS)':
      'a period that ends at midnight does not reach the next day',
  }),
  ...faultsIn('query/period-request.ts', 'period-parameters', {
    'streams.length > [-1-]{+2+} ? Math.min': 'two streams have pages of at most 200 rows',
  }),
  ...faultsIn('limits/request-rate.ts', 'limits', {
    'window.count <{+=+} limit': 'the limit of requests per minute',
    '[-isSeen(keyId, address, nowMs) ? null : -]attempts': 'a key that has been used is not counted',
  }),
  ...faultsIn('limits/request-rate.ts', 'routes', {
    '[-nowMs >= window.startMs &&-]': 'a clock that was set back does not lock out clients',
  }),
  ...faultsIn('limits/request-rate.ts', 'token-form', {
    '[-seen.isSeen(clientId, address, nowMs) ? owners : strangers-]{+strangers+}':
      "strangers cannot use up the owner's rate",
  }),
  ...faultsIn('bounded-map.ts', 'routes', {
    'if ([-this.size > this.#entriesMax-]{+false+}) {': 'stored entries are bounded',
  }),
  ...faultsIn('limits/daily-rows.ts', 'limits', {
    '(dayOf(nowMs) + 1) * DAY_MS{+ + 1+}': 'an allowance resets at midnight',
    'const DAYS_MAX = [-3-]{+1+};': "no day's allowance is granted twice",
  }),
  ...faultsIn('limits/daily-rows.ts', 'limits-http', {
    'usedByKey <{+=+} ofKey': 'a used-up allowance of a key is refused',
  }),
  ...faultsIn('appliance.ts', 'usage', {
    'createSeenKeys([-stored.seen-])': 'networks are known after a restart',
  }),
  ...faultsIn('http/line-limit.ts', 'line-limit', {
    '[-lines < linesMax &&-]': 'strangers of all addresses share their lines',
  }),
  ...faultsIn('http/connections.ts', 'connection-limit', {
    '[-waiting.set(connection, null);-]': 'a connection that sends nothing makes room',
  }),
  ...faultsIn('http/pipeline.ts', 'pipeline', {
    'exchange.rate = pipeline.rate.[-take-]{+current+}(credential.key_id, nowMs);': 'requests are counted',
  }),
  ...faultsIn('http/pipeline.ts', 'long-poll', {
    '[-pipeline.allowance.require(again, atMs);-]': 'after a wait the allowance is checked again',
  }),
  ...faultsIn('http/pipeline.ts', 'event-stream', {
    '[-if (!rate.allowed) throw rateLimited(rate);-]': 'each page of an event stream counts as a request',
  }),
];
