/** Faults in pages: rows, cursor, has_more, as_of, filters. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const READ_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('query/changes-page.ts', 'changes-page', {
    '[-, has_more: reached !== null-] };': 'a page says that there is more',
    '[-page.rows === query.limit ? page.last : -]bound': 'a filtered page continues after its last row',
    '[- AND position <= @bound-]$': 'a page ends at its bound',
  }),
  ...faultsIn('query/changes-page.ts', 'stream-check', {
    '[-checkPlaces(page.places, from, to);-]': 'a page has every row',
  }),
  ...faultsIn('query/stream-check.ts', 'stream-check', {
    'if ([-!ends.every((end, stream) => end === next[stream])-]{+false+}) throw':
      'missing rows at the end are detected',
  }),
  ...faultsIn('log/detection-rows.ts', 'checked-texts', {
    '[-requireChecksum(found);-]': 'a damaged text is not merged',
  }),
  ...faultsIn('query/detection-text.ts', 'checked-texts', {
    'if ([-!text.toString().startsWith(`{"id":"${id}",`)-]{+false+})': 'a detection is at its own place',
  }),
  ...faultsIn('store/row-checksum.ts', 'row-checksum', {
    '|| [-(crc32(COMMA, crc32(data)) | 0) !== crc-]{+false+}) throw': 'the texts of a page are checked',
    '[-Math.imul(place, 0x9e3779b1) ^ -]Math': 'a checksum covers the place',
  }),
  ...faultsIn('query/delivery.ts', 'changes-page', {
    '(recent.get(position) ?? [-Infinity-]{+0+}) >= sinceMs':
      'a change without a delivery time is not skipped',
    'delivered_at >[-=-] @since': 'since is inclusive',
  }),
  ...faultsIn('query/as-of.ts', 'changes-page', {
    'done [-<-]{+>+} earliest': 'as_of is the earliest of the exports',
  }),
  ...faultsIn('log/detection-rows.ts', 'changes-page', {
    'Math.[-round-]{+floor+}(filters.score)': 'min_score rounds half up',
  }),
  ...faultsIn('query/period-page.ts', 'period-page', {
    'upto: [-isWithin ? bound.id : -]LAST_ID': 'a page of a period ends at its bound',
  }),
  ...faultsIn('http/waiting.ts', 'long-poll', {
    '[-own.length >= WAITS_PER_KEY_MAX-]{+false+}': 'the waits of a key are bounded',
  }),
  ...faultsIn('http/page-turns.ts', 'page-turns', {
    '[-queues.delete(keyId);\n    -]if': 'each key has one place in the queue',
  }),
  ...faultsIn('query/changes-page.ts', 'changes-page', {
    'place > @low AND [-place-]{+place + 0+} <= @high': 'a page of one stream is a range of places',
  }),
];
