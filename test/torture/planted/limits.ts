/** Off by one at each limit of the contract. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const LIMIT_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('detection/fields.ts', [
    [
      'SOURCE_ID_CHARACTERS_MAX = 200;',
      'SOURCE_ID_CHARACTERS_MAX = 201;',
      '200 characters of a source id',
      'parameters',
    ],
  ]),
  ...faultsIn('limits/contract-limits.ts', [
    ['PAGE_ROWS_MAX = 1000', 'PAGE_ROWS_MAX = 1001', 'limit is at most 1000', 'parameters'],
    ['PAGE_ROWS_DEFAULT = 100;', 'PAGE_ROWS_DEFAULT = 101;', 'limit is 100 by default', 'parameters'],
    ['STREAMS_MAX = 20;', 'STREAMS_MAX = 21;', 'a request reads 20 streams', 'stream-rules'],
    ['SUBSCRIPTIONS_MAX = 4;', 'SUBSCRIPTIONS_MAX = 5;', 'four subscriptions', 'parameters'],
    ['PUBLISHERS_MAX = 50;', 'PUBLISHERS_MAX = 51;', '50 publishers', 'parameters'],
    ['DOMAINS_MAX = 20;', 'DOMAINS_MAX = 21;', '20 domains', 'parameters'],
    [
      'PERIOD_ROWS_MAX = 200;',
      'PERIOD_ROWS_MAX = 201;',
      'several streams have pages of at most 200 rows',
      'period-parameters',
    ],
    ['PERIOD_DAYS_MAX = 31;', 'PERIOD_DAYS_MAX = 32;', '31 calendar days', 'period-parameters'],
    ['DAY_MS + HOUR_MS;', 'DAY_MS + HOUR_MS + 1;', '31 x 24 hours and one more', 'period-parameters'],
    ['SHARDS_MAX = 64;', 'SHARDS_MAX = 65;', '64 shards', 'period-parameters'],
    [
      'SINCE_AGE_MAX_MS = 31 * DAY_MS;',
      'SINCE_AGE_MAX_MS = 31 * DAY_MS + 1;',
      'since is at most 31 x 24 hours ago',
      'parameters',
    ],
    ['PAGE_CHUNKS_MAX = 50;', 'PAGE_CHUNKS_MAX = 51;', 'a page reads 50 chunks', 'changes-page'],
    [
      'TOKEN_BODY_BYTES_MAX = 4096;',
      'TOKEN_BODY_BYTES_MAX = 4097;',
      '4,096 bytes of a token request',
      'token-refusal',
    ],
    [
      'TOKEN_LIFETIME_MS = HOUR_MS;',
      'TOKEN_LIFETIME_MS = HOUR_MS + 1000;',
      'a token lasts 3,600 seconds',
      'token-form',
    ],
    ['90 * DAY_MS;', '91 * DAY_MS;', 'gaps of 90 days', 'me'],
    ['DATA_GAPS_MAX = 200;', 'DATA_GAPS_MAX = 201;', 'at most 200 gaps', 'me'],
    ['ME_CACHE_SECONDS = 60;', 'ME_CACHE_SECONDS = 61;', 'cached for up to a minute', 'me'],
    [
      'RATE_WINDOW_MS = MINUTE_MS;',
      'RATE_WINDOW_MS = MINUTE_MS - 1000;',
      'requests are counted by the minute',
      'limits',
    ],
  ]),
  ...faultsIn('query/changes-parameters.ts', [
    [
      'sinceMs < nowMs - SINCE_AGE_MAX_MS',
      'sinceMs <= nowMs - SINCE_AGE_MAX_MS',
      'exactly 31 x 24 hours ago is accepted',
      'parameters',
    ],
    ['  if (sinceMs > nowMs) throw', '  if (sinceMs >= nowMs) throw', 'since may be now', 'parameters'],
    [
      '  if (cursor !== null && since !== null)\n',
      '  if (false)\n',
      'since and cursor exclude each other',
      'parameters',
    ],
  ]),
  ...faultsIn('query/common-parameters.ts', [
    ['integer(1, PAGE_ROWS_MAX)', 'integer(0, PAGE_ROWS_MAX)', 'limit is at least 1', 'parameters'],
    ['integer(0, 100)', 'integer(0, 101)', 'min_score is at most 100', 'parameters'],
  ]),
  ...faultsIn('query/value-kinds.ts', [
    [
      '[...any].length > maxLength',
      '[...any].length >= maxLength',
      '200 characters are accepted',
      'parameters',
    ],
    [
      '[...any].length > maxLength',
      'any.length > maxLength',
      'characters are counted, not UTF-16 code units',
      'parameters',
    ],
  ]),
  ...faultsIn('query/period.ts', [
    [
      'daysFromTo(from.day, lastDay) > PERIOD_DAYS_MAX',
      'daysFromTo(from.day, lastDay) >= PERIOD_DAYS_MAX',
      '31 calendar days are accepted',
      'period-parameters',
    ],
    [
      'toMs - fromMs > PERIOD_MAX_MS',
      'toMs - fromMs >= PERIOD_MAX_MS',
      '31 x 24 hours and one more are accepted',
      'period-parameters',
    ],
    ['shards <= SHARDS_MAX', 'shards < SHARDS_MAX', '64 shards are accepted', 'period-parameters'],
    [
      'Math.floor((to_ms - 1) / DAY_MS)',
      'Math.floor(to_ms / DAY_MS)',
      'a period that ends at midnight does not reach the next day',
      'period-parameters',
    ],
  ]),
  ...faultsIn('query/period-request.ts', [
    [
      'read.length > SUBSCRIPTIONS_MAX',
      'read.length >= SUBSCRIPTIONS_MAX',
      'four subscriptions are accepted',
      'period-parameters',
    ],
    [
      'streams.length > 1 ? Math.min',
      'streams.length > 2 ? Math.min',
      'two streams have pages of at most 200 rows',
      'period-parameters',
    ],
  ]),
  ...faultsIn('http/body.ts', [
    ['?? 0) > bytesMax', '?? 0) >= bytesMax', '4,096 announced bytes are accepted', 'token-refusal'],
  ]),
  ...faultsIn('limits/request-rate.ts', [
    ['window.count < limit', 'window.count <= limit', 'the limit of requests per minute', 'limits'],
    [
      'nowMs < window.startMs + RATE_WINDOW_MS',
      'nowMs <= window.startMs + RATE_WINDOW_MS',
      'after the reset the full rate is available',
      'limits',
    ],
    ['nowMs >= window.startMs && ', '', 'a clock that was set back does not lock out clients', 'routes'],
  ]),
  ...faultsIn('bounded-map.ts', [
    ['if (this.size > this.#entriesMax) {', 'if (false) {', 'stored entries are bounded', 'routes'],
  ]),
  ...faultsIn('limits/daily-rows.ts', [
    [
      '(dayOf(nowMs) + 1) * DAY_MS',
      '(dayOf(nowMs) + 1) * DAY_MS + 1',
      'an allowance resets at midnight',
      'limits',
    ],
    ['usedByAccount >= ofAccount', 'usedByAccount > ofAccount', 'a used-up allowance is refused', 'limits'],
    ['usedByKey < ofKey', 'usedByKey <= ofKey', 'a used-up allowance of a key is refused', 'limits'],
    ["      rows.add('key', reader.key_id, count, nowMs);\n", '', 'rows count for the key', 'limits'],
  ]),
  ...faultsIn('limits/daily-rows.ts', [
    ['const DAYS_MAX = 3;', 'const DAYS_MAX = 1;', "no day's allowance is granted twice", 'limits'],
  ]),
  ...faultsIn('limits/key-uses.ts', [
    ['SEEN_MS = DAY_MS;', 'SEEN_MS = DAY_MS + 1;', 'a key is known for a day', 'limits'],
  ]),
  ...faultsIn('limits/request-rate.ts', [
    [
      'isSeen(keyId, address, nowMs) ? null : attempts',
      'attempts',
      'a key that has been used is not counted',
      'limits',
    ],
  ]),
  ...faultsIn('appliance.ts', [
    ['createSeenKeys(stored.seen)', 'createSeenKeys()', 'networks are known after a restart', 'usage'],
  ]),
  ...faultsIn('http/stranger-log.ts', [
    ['lines < LINES_MAX && ', '', 'strangers of all addresses share their lines', 'stranger-log'],
  ]),
  ...faultsIn('http/connection-limit.ts', [
    [
      '      receiving.set(member, null);\n',
      '',
      'a connection that sends nothing makes room',
      'connection-limit',
    ],
  ]),
  ...faultsIn('limits/request-rate.ts', [
    [
      'seen.isSeen(clientId, address, nowMs) ? owners : strangers',
      'strangers',
      "strangers cannot use up the owner's rate",
      'token-form',
    ],
  ]),
  ...faultsIn('limits/usage.ts', [
    ['      clearInterval(timer);\n', '', 'a closed keeper has no timer', 'timers'],
  ]),
  ...faultsIn('http/pipeline.ts', [
    [
      '  exchange.rate = pipeline.rate.take(credential.key_id, nowMs);\n',
      '  exchange.rate = pipeline.rate.current(credential.key_id, nowMs);\n',
      'requests are counted',
      'pipeline',
    ],
    [
      '    pipeline.allowance.require(again, atMs);\n',
      '',
      'after a wait the allowance is checked again',
      'long-poll',
    ],
    [
      '    if (route.scope !== null) requireScope(again, route.scope);\n',
      '',
      'after a wait the scope is checked again',
      'long-poll',
    ],
  ]),
];
