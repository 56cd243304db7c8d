/** Off by one at each limit of the contract. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LIMIT_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('detection/fields.ts', 'parameters', {
    'SOURCE_ID_CHARACTERS_MAX = [-200-]{+201+};': '200 characters of a source id',
  }),
  ...faultsIn('limits/contract-limits.ts', 'parameters', {
    'PAGE_ROWS_MAX = [-1000-]{+1001+}': 'limit is at most 1000',
    'PAGE_ROWS_DEFAULT = [-100-]{+101+};': 'limit is 100 by default',
    'SUBSCRIPTIONS_MAX = [-4-]{+5+};': 'four subscriptions',
    'PUBLISHERS_MAX = [-50-]{+51+};': '50 publishers',
    'DOMAINS_MAX = [-20-]{+21+};': '20 domains',
    'SINCE_AGE_MAX_MS = 31 * DAY_MS{+ + 1+};': 'since is at most 31 x 24 hours ago',
  }),
  ...faultsIn('limits/contract-limits.ts', 'stream-rules', {
    'STREAMS_MAX = [-20-]{+21+};': 'a request reads 20 streams',
  }),
  ...faultsIn('limits/contract-limits.ts', 'period-parameters', {
    'PERIOD_ROWS_MAX = [-200-]{+201+};': 'several streams have pages of at most 200 rows',
    'PERIOD_DAYS_MAX = [-31-]{+32+};': '31 calendar days',
    'DAY_MS + HOUR_MS{+ + 1+};': '31 x 24 hours and one more',
    'SHARDS_MAX = [-64-]{+65+};': '64 shards',
  }),
  ...faultsIn('limits/contract-limits.ts', 'changes-page', {
    'PAGE_CHUNKS_MAX = [-50-]{+51+};': 'a page reads 50 chunks',
  }),
  ...faultsIn('limits/contract-limits.ts', 'token-refusal', {
    'TOKEN_BODY_BYTES_MAX = [-4096-]{+4097+};': '4,096 bytes of a token request',
  }),
  ...faultsIn('limits/contract-limits.ts', 'token-form', {
    'TOKEN_LIFETIME_MS = HOUR_MS{+ + 1000+};': 'a token lasts 3,600 seconds',
  }),
  ...faultsIn('limits/contract-limits.ts', 'me', {
    '[-90-]{+91+} * DAY_MS;': 'gaps of 90 days',
    'DATA_GAPS_MAX = [-200-]{+201+};': 'at most 200 gaps',
    'ME_CACHE_SECONDS = [-60-]{+61+};': 'cached for up to a minute',
  }),
  ...faultsIn('limits/contract-limits.ts', 'limits', {
    'RATE_WINDOW_MS = MINUTE_MS{+ - 1000+};': 'requests are counted by the minute',
  }),
  ...faultsIn('query/changes-parameters.ts', 'parameters', {
    'sinceMs <{+=+} nowMs - SINCE_AGE_MAX_MS': 'exactly 31 x 24 hours ago is accepted',
    'if (sinceMs >{+=+} nowMs) throw': 'since may be now',
    'if ([-cursor !== null && since !== null-]{+false+})': 'since and cursor exclude each other',
  }),
  ...faultsIn('query/common-parameters.ts', 'parameters', {
    'integer([-1-]{+0+}, PAGE_ROWS_MAX)': 'limit is at least 1',
    'integer(0, [-100-]{+101+})': 'min_score is at most 100',
  }),
  ...faultsIn('query/value-kinds.ts', 'parameters', {
    '[...any].length >{+=+} maxLength': '200 characters are accepted',
    '[-[...any]-]{+any+}.length > maxLength': 'characters are counted, not UTF-16 code units',
  }),
  ...faultsIn('query/period.ts', 'period-parameters', {
    'daysFromTo(from.day, lastDay) >{+=+} PERIOD_DAYS_MAX': '31 calendar days are accepted',
    'toMs - fromMs >{+=+} PERIOD_MAX_MS': '31 x 24 hours and one more are accepted',
    'shards <[-=-] SHARDS_MAX': '64 shards are accepted',
    'Math.floor([-(to_ms - 1)-]{+to_ms+} / DAY_MS)':
      'a period that ends at midnight does not reach the next day',
  }),
  ...faultsIn('query/period-request.ts', 'period-parameters', {
    'read.length >{+=+} SUBSCRIPTIONS_MAX': 'four subscriptions are accepted',
    'streams.length > [-1-]{+2+} ? Math.min': 'two streams have pages of at most 200 rows',
  }),
  ...faultsIn('http/body.ts', 'token-refusal', {
    '?? 0) >{+=+} bytesMax': '4,096 announced bytes are accepted',
  }),
  ...faultsIn('limits/request-rate.ts', 'limits', {
    'window.count <{+=+} limit': 'the limit of requests per minute',
    'nowMs <{+=+} window.startMs + RATE_WINDOW_MS': 'after the reset the full rate is available',
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
    'usedByAccount >[-=-] ofAccount': 'a used-up allowance is refused',
    'usedByKey <{+=+} ofKey': 'a used-up allowance of a key is refused',
    "[-rows.add('key', reader.key_id, count, nowMs);-]": 'rows count for the key',
    'const DAYS_MAX = [-3-]{+1+};': "no day's allowance is granted twice",
  }),
  ...faultsIn('limits/key-uses.ts', 'limits', { 'SEEN_MS = DAY_MS{+ + 1+};': 'a key is known for a day' }),
  ...faultsIn('appliance.ts', 'usage', {
    'createSeenKeys([-stored.seen-])': 'networks are known after a restart',
  }),
  ...faultsIn('http/line-limit.ts', 'line-limit', {
    '[-lines < linesMax &&-]': 'strangers of all addresses share their lines',
  }),
  ...faultsIn('http/connection-limit.ts', 'connection-limit', {
    '[-waiting.set(member, null);-]': 'a connection that sends nothing makes room',
  }),
  ...faultsIn('limits/usage.ts', 'timers', { '[-clearInterval(timer);-]': 'a closed keeper has no timer' }),
  ...faultsIn('http/pipeline.ts', 'pipeline', {
    'exchange.rate = pipeline.rate.[-take-]{+current+}(credential.key_id, nowMs);': 'requests are counted',
  }),
  ...faultsIn('http/pipeline.ts', 'long-poll', {
    '[-pipeline.allowance.require(again, atMs);-]': 'after a wait the allowance is checked again',
    '[-if (route.scope !== null) requireScope(again, route.scope);-]':
      'after a wait the scope is checked again',
  }),
];
