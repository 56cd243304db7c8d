/** Faults in pages: rows, cursor, has_more, as_of, filters. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const READ_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('query/changes-page.ts', 'changes-page', {
    'const position = [-Math.max(after, head.position)-]{+head.position+};': 'a cursor never moves backwards',
    'const position = reached ?? [-head.position-]{+after+};': 'at the end the cursor advances',
    '[-, has_more: reached !== null-] };': 'a page says that there is more',
    'skipped: SCAN_ROWS_MAX[- - 1-]': 'a page reads 50 chunks',
    '[-Math.min(from + query.limit, stream.sequence)-]{+from + query.limit + 1+}':
      'a page has at most `limit` rows',
    '[-page.rows === query.limit ? page.last : -]bound': 'a filtered page continues after its last row',
    '[- AND position <= @bound-]$': 'a page ends at its bound',
    '[-withOwnAddresses ? putBaseUrl(page.data, baseUrl) : -]page.data': 'photo URLs start with the base URL',
  }),
  ...faultsIn('query/changes-page.ts', 'stream-check', {
    '[-checkPlaces(page.places, from, to);-]': 'a page has every row',
    '[-checkHead(db, head.position);-]': 'the head of all streams is checked',
    '[-requireChecksum(row);\n    return-]{+return+} renderProjected': 'texts with `fields` are checked',
  }),
  ...faultsIn('query/stream-check.ts', 'stream-check', {
    'if (!isOfStream || !isBefore[- || !isBehind-])': 'an index that points too early is detected',
    'if (recorded !== head[- || delivered !== head-])': 'the last transaction is compared with the head',
    'if ([-!ends.every((end, stream) => end === next[stream])-]{+false+}) throw':
      'missing rows at the end are detected',
  }),
  ...faultsIn('query/detection-text.ts', 'checked-texts', {
    '[-requireChecksum(stored);-]': 'the text of one detection is checked',
  }),
  ...faultsIn('query/latest-rows.ts', 'checked-texts', {
    '[-rows.forEach(requireChecksum);\n    return-]{+return+} rows.sort': 'texts in the console are checked',
  }),
  ...faultsIn('log/detection-rows.ts', 'checked-texts', {
    '[-requireChecksum(found);-]': 'a damaged text is not merged',
  }),
  ...faultsIn('store/row-checksum.ts', 'row-checksum', {
    '|| [-(crc32(COMMA, crc32(data)) | 0) !== crc-]{+false+}) throw': 'the texts of a page are checked',
    '[-Math.imul(place, 0x9e3779b1) ^ -]Math': 'a checksum covers the place',
  }),
  ...faultsIn('query/delivery.ts', 'changes-page', {
    '(recent.get(position) ?? [-Infinity-]{+0+}) >= sinceMs':
      'a change without a delivery time is not skipped',
    'delivered_at >[-=-] @since': 'since is inclusive',
    'return first === Infinity ? null : first[- - 1-];': 'since starts with its first change',
  }),
  ...faultsIn('query/delivery.ts', 'stream-check', {
    '[-before.delivered_at >= sinceMs-]{+false+})': 'a missing entry in the index of times is detected',
  }),
  ...faultsIn('query/as-of.ts', 'changes-page', {
    'done [-<-]{+>+} earliest': 'as_of is the earliest of the exports',
    'if (done === null) [-return null-]{+continue+};': 'as_of is null while an export has none',
    'startMs[- + WINDOW_MS-]': 'as_of is the end of a window',
    "[- AND status = 'done'-])": 'as_of is of finished windows',
  }),
  ...faultsIn('query/as-of.ts', 'stream-rules', {
    '[-Math.min(asOf, nowMs)-]{+asOf+}': 'as_of is not in the future',
  }),
  ...faultsIn('query/as-of.ts', 'me', {
    'limit: DATA_GAPS_MAX{+ + 1+},': 'at most 200 gaps',
    'from: [-nowMs - DATA_GAP_AGE_MAX_MS-]{+0+},': 'gaps of 90 days',
    "'missing', '[-abandoned', '-]failed'": 'abandoned windows are gaps',
    'ORDER BY window_start [-DESC -]LIMIT @limit`;\n\nconst': 'gaps are newest first',
  }),
  ...faultsIn('query/common-parameters.ts', 'changes-page', {
    'band >[-=-] @min_band': 'min_band includes its band',
    'IS [-NULL OR-]{+NOT NULL AND+}': 'exclusions keep detections without a value',
    'value ? [-1 : 0-]{+0 : 1+}': 'print selects the requested articles',
  }),
  ...faultsIn('query/common-parameters.ts', 'filters', {
    'source_hash = @source_hash[- AND instr(body, @source_id) > 0-]':
      'two sources with one hash are told apart',
  }),
  ...faultsIn('log/detection-rows.ts', 'changes-page', {
    'Math.[-round-]{+floor+}(filters.score)': 'min_score rounds half up',
  }),
  ...faultsIn('query/period-page.ts', 'period-page', {
    'limit: query.limit[- - rows-]': 'a page of a period has at most `limit` rows',
  }),
  ...faultsIn('query/period.ts', 'period-parameters', {
    'const toMs = [-Math.min(askedToMs, nowMs)-]{+askedToMs+};': 'a `to` in the future means now',
    'if (toMs <[-=-] fromMs) {': 'a period is not empty',
  }),
  ...faultsIn('http/waiting.ts', 'timers', {
    '[-clearTimeout(timer);-]': 'a finished wait has no timer',
    "[-socket.removeListener('close', end).removeListener('end', end);-]":
      'a finished wait leaves no listener',
    '[-for (const waiter of [...waiters]) waiter.end();-]': 'a stop ends all waits',
  }),
  ...faultsIn('http/waiting.ts', 'long-poll', {
    '[-own.length >= WAITS_PER_KEY_MAX-]{+false+}': 'the waits of a key are bounded',
    '[-waiters.size >= waitsMax-]{+false+}': 'the waits of all keys are bounded',
  }),
  ...faultsIn('http/waiting.ts', 'lab-clock', {
    '(isOver[- || monotonicMs() >= endMs-])': 'a wait ends by the clock of a lab',
  }),
  ...faultsIn('http/page-turns.ts', 'page-turns', {
    '[-queues.delete(keyId);\n    -]if': 'each key has one place in the queue',
    '[-postponed > 0-]{+false+}': 'connections are accepted before pages are read',
    '[-performance.now() < endMs-]{+true+}': 'a turn ends after a large page',
    '[-&& postponed < ARRIVALS_MAX-]': 'pages are read while connections arrive',
  }),
  ...faultsIn('http/body.ts', 'timers', { '[-clearTimeout(timer);-]': 'a received body has no timer' }),
];
