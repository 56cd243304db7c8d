/** Faults in pages: rows, cursor, has_more, as_of, filters. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const READ_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('query/changes-page.ts', 'changes-page', {
    'const position = [-Math.max(after, head.position)-]{+head.position+};': 'a cursor never moves backwards',
    '[-, has_more: reached !== null-] };': 'a page says that there is more',
    '[-page.rows === query.limit ? page.last : -]bound': 'a filtered page continues after its last row',
    '[- AND position <= @bound-]$': 'a page ends at its bound',
  }),
  ...faultsIn('query/changes-page.ts', 'stream-check', {
    '[-checkPlaces(page.places, from, to);-]': 'a page has every row',
  }),
  ...faultsIn('query/stream-check.ts', 'stream-check', {
    'if (!isOfStream || !isBefore[- || !isBehind-])': 'an index that points too early is detected',
    'if ([-!ends.every((end, stream) => end === next[stream])-]{+false+}) throw':
      'missing rows at the end are detected',
  }),
  ...faultsIn('log/detection-rows.ts', 'checked-texts', {
    '[-requireChecksum(found);-]': 'a damaged text is not merged',
  }),
  ...faultsIn('store/row-checksum.ts', 'row-checksum', {
    '|| [-(crc32(COMMA, crc32(data)) | 0) !== crc-]{+false+}) throw': 'the texts of a page are checked',
    '[-Math.imul(place, 0x9e3779b1) ^ -]Math': 'a checksum covers the place',
  }),
  ...faultsIn('query/changes-page.ts', 'stream-check', {
    "const MOVED = '[-row.position <> page.position-]{+0+}';":
      'rows have the positions by which they are in order',
  }),
  ...faultsIn('query/delivery.ts', 'changes-page', {
    '(recent.get(position) ?? [-Infinity-]{+0+}) >= sinceMs':
      'a change without a delivery time is not skipped',
    'delivered_at >[-=-] @since': 'since is inclusive',
  }),
  ...faultsIn('query/delivery.ts', 'stream-check', {
    '[-before.delivered_at >= sinceMs-]{+false+})': 'a missing entry in the index of times is detected',
  }),
  ...faultsIn('query/as-of.ts', 'changes-page', {
    'done [-<-]{+>+} earliest': 'as_of is the earliest of the exports',
    "[- AND status = 'done'-])": 'as_of is of finished windows',
  }),
  ...faultsIn('query/as-of.ts', 'stream-rules', {
    '[-Math.min(asOf, nowMs)-]{+asOf+}': 'as_of is not in the future',
  }),
  ...faultsIn('query/as-of.ts', 'me', {
    "'missing', '[-abandoned', '-]failed'": 'abandoned windows are gaps',
  }),
  ...faultsIn('query/common-parameters.ts', 'changes-page', {
    'IS [-NULL OR-]{+NOT NULL AND+}': 'exclusions keep detections without a value',
  }),
  ...faultsIn('query/common-parameters.ts', 'filters', {
    'source_hash = @source_hash[- AND instr(body, @source_id) > 0-]':
      'two sources with one hash are told apart',
  }),
  ...faultsIn('log/detection-rows.ts', 'changes-page', {
    'Math.[-round-]{+floor+}(filters.score)': 'min_score rounds half up',
  }),
  ...faultsIn('query/period-page.ts', 'period-page', {
    'upto: [-isWithin ? bound.id : -]LAST_ID': 'a page of a period ends at its bound',
  }),
  ...faultsIn('query/period.ts', 'period-parameters', {
    'const toMs = [-Math.min(askedToMs, nowMs)-]{+askedToMs+};': 'a `to` in the future means now',
  }),
  ...faultsIn('http/waiting.ts', 'timers', {
    "[-socket.removeListener('close', end).removeListener('end', end);-]":
      'a finished wait leaves no listener',
  }),
  ...faultsIn('http/waiting.ts', 'long-poll', {
    '[-own.length >= WAITS_PER_KEY_MAX-]{+false+}': 'the waits of a key are bounded',
  }),
  ...faultsIn('http/waiting.ts', 'lab-clock', {
    '(isOver[- || monotonicMs() >= endMs-])': 'a wait ends by the clock of a lab',
  }),
  ...faultsIn('http/page-turns.ts', 'page-turns', {
    '[-queues.delete(keyId);\n    -]if': 'each key has one place in the queue',
    '[-performance.now() < endMs-]{+true+}': 'a turn ends after a large page',
  }),
];
