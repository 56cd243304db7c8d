/** Faults in pages: rows, cursor, has_more, as_of, filters. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const READ_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('query/changes-page.ts', [
    [
      'const position = Math.max(after, head.position);',
      'const position = head.position;',
      'a cursor never moves backwards',
      'changes-page',
    ],
    [
      'const position = reached ?? head.position;',
      'const position = reached ?? after;',
      'at the end the cursor advances',
      'changes-page',
    ],
    [', has_more: reached !== null };', ' };', 'a page says that there is more', 'changes-page'],
    ['skipped: SCAN_ROWS_MAX - 1', 'skipped: SCAN_ROWS_MAX', 'a page reads 50 chunks', 'changes-page'],
    ['  checkPlaces(page.places, from, to);\n', '', 'a page has every row', 'stream-check'],
    [
      '  if (to === ends) checkEnd(page.last, streams);\n',
      '',
      'the last page ends where the stream does',
      'stream-check',
    ],
    ['    checkHead(db, head.position);\n', '', 'the head of all streams is checked', 'stream-check'],
    [
      '    requireChecksum(row);\n    return renderProjected',
      '    return renderProjected',
      'texts with `fields` are checked',
      'stream-check',
    ],
    [
      'Math.min(from + query.limit, stream.sequence)',
      'from + query.limit + 1',
      'a page has at most `limit` rows',
      'changes-page',
    ],
    [
      'page.rows === query.limit ? page.last : bound',
      'bound',
      'a filtered page continues after its last row',
      'changes-page',
    ],
    [' AND position <= @bound$', '$', 'a page ends at its bound', 'changes-page'],
    [
      'withOwnAddresses ? putBaseUrl(page.data, baseUrl) : page.data',
      'page.data',
      'photo URLs start with the base URL',
      'changes-page',
    ],
  ]),
  ...faultsIn('query/stream-check.ts', [
    [
      'if (!isOfStream || !isBefore || !isBehind)',
      'if (!isOfStream || !isBefore)',
      'an index that points too early is detected',
      'stream-check',
    ],
    [
      'if (recorded !== head || delivered !== head)',
      'if (recorded !== head)',
      'the last transaction is compared with the head',
      'stream-check',
    ],
    [
      '  if (!ends.every((end, stream) => end === next[stream])) throw',
      '  if (false) throw',
      'missing rows at the end are detected',
      'stream-check',
    ],
  ]),
  ...faultsIn('query/detection-text.ts', [
    ['  requireChecksum(stored);\n', '', 'the text of one detection is checked', 'checked-texts'],
  ]),
  ...faultsIn('query/latest-rows.ts', [
    [
      '    rows.forEach(requireChecksum);\n    return rows.sort',
      '    return rows.sort',
      'texts in the console are checked',
      'checked-texts',
    ],
  ]),
  ...faultsIn('history/detection-rows.ts', [
    ['      requireChecksum(found);\n', '', 'a damaged text is not merged', 'checked-texts'],
  ]),
  ...faultsIn('store/row-checksum.ts', [
    [
      'if ((crc32(COMMA, crc32(data)) | 0) !== crc) throw',
      'if (false) throw',
      'the texts of a page are checked',
      'row-checksum',
    ],
    ['    Math.imul(position, FACTORS[2]) ^\n', '', 'a checksum covers the position', 'row-checksum'],
    ['    Math.imul(place, FACTORS[0]) ^\n', '', 'a checksum covers the place', 'row-checksum'],
  ]),
  ...faultsIn('query/delivery.ts', [
    [
      '(recent.get(position) ?? Infinity) >= sinceMs',
      '(recent.get(position) ?? 0) >= sinceMs',
      'a change without a delivery time is not skipped',
      'changes-page',
    ],
    ['delivered_at >= @since', 'delivered_at > @since', 'since is inclusive', 'changes-page'],
    [
      'return first === Infinity ? null : first - 1;',
      'return first === Infinity ? null : first;',
      'since starts with its first change',
      'changes-page',
    ],
    [
      'before.delivered_at >= sinceMs)',
      'false)',
      'a missing entry in the index of times is detected',
      'stream-check',
    ],
  ]),
  ...faultsIn('query/as-of.ts', [
    ['done < earliest', 'done > earliest', 'as_of is the earliest of the exports', 'changes-page'],
    [
      '    if (done === null) return null;\n',
      '    if (done === null) continue;\n',
      'as_of is null while an export has none',
      'changes-page',
    ],
    ['startMs + WINDOW_MS', 'startMs', 'as_of is the end of a window', 'changes-page'],
    ['Math.min(asOf, nowMs)', 'asOf', 'as_of is not in the future', 'stream-rules'],
    [" AND status = 'done')", ')', 'as_of is of finished windows', 'changes-page'],
  ]),
  ...faultsIn('query/common-parameters.ts', [
    ['const ROUNDING = 0.5;', 'const ROUNDING = 0.4;', 'min_score rounds half up', 'changes-page'],
    ['band >= @min_band', 'band > @min_band', 'min_band includes its band', 'changes-page'],
    [' IS NULL OR ', ' IS NOT NULL AND ', 'exclusions keep detections without a value', 'changes-page'],
    ['value ? 1 : 0', 'value ? 0 : 1', 'print selects the requested articles', 'changes-page'],
  ]),
  ...faultsIn('query/as-of.ts', [
    ['    limit: DATA_GAPS_MAX,\n', '    limit: DATA_GAPS_MAX + 1,\n', 'at most 200 gaps', 'me'],
    ['    from: nowMs - DATA_GAP_AGE_MAX_MS,\n', '    from: 0,\n', 'gaps of 90 days', 'me'],
    ["'missing', 'abandoned', 'failed'", "'missing', 'failed'", 'abandoned windows are gaps', 'me'],
    [
      '  ORDER BY window_start DESC LIMIT @limit`;\n\nconst',
      '  ORDER BY window_start LIMIT @limit`;\n\nconst',
      'gaps are newest first',
      'me',
    ],
  ]),
  ...faultsIn('query/period-page.ts', [
    [
      'limit: query.limit - rows',
      'limit: query.limit',
      'a page of a period has at most `limit` rows',
      'period-page',
    ],
  ]),
  ...faultsIn('query/period.ts', [
    [
      'const toMs = Math.min(askedToMs, nowMs);',
      'const toMs = askedToMs;',
      'a `to` in the future means now',
      'period-parameters',
    ],
    ['  if (toMs <= fromMs) {\n', '  if (toMs < fromMs) {\n', 'a period is not empty', 'period-parameters'],
  ]),
  ...faultsIn('http/waiting.ts', [
    ['        clearTimeout(timer);\n', '', 'a finished wait has no timer', 'timers'],
    [
      "        socket.removeListener('close', end).removeListener('end', end);\n",
      '',
      'a finished wait leaves no listener',
      'timers',
    ],
    ['      for (const waiter of [...waiters]) waiter.end();\n', '', 'a stop ends all waits', 'timers'],
    ['own.length >= WAITS_PER_KEY_MAX', 'false', 'the waits of a key are bounded', 'long-poll'],
    ['waiters.size >= waitsMax', 'false', 'the waits of all keys are bounded', 'long-poll'],
    ['(isOver || monotonicMs() >= endMs)', '(isOver)', 'a wait ends by the clock of a lab', 'lab-clock'],
  ]),
  ...faultsIn('http/page-turns.ts', [
    ['    queues.delete(keyId);\n    if', '    if', 'each key has one place in the queue', 'page-turns'],
    ['postponed > 0', 'false', 'connections are accepted before pages are read', 'page-turns'],
    ['performance.now() < endMs', 'true', 'a turn ends after a large page', 'page-turns'],
    ['>= PAGES_PER_KEY_MAX', '>= Infinity', 'the pages of a key are bounded', 'page-turns'],
    ['size >= pagesMax', 'false', 'the pages of all keys are bounded', 'page-turns'],
    [' && postponed < ARRIVALS_MAX', '', 'pages are read while connections arrive', 'page-turns'],
  ]),
  ...faultsIn('http/body.ts', [
    ['      clearTimeout(timer);\n', '', 'a received body has no timer', 'timers'],
  ]),
];
