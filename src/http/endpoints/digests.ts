/**
 * GET /v1/digests: the pages of a period as digests, so that a client can prove its copy without reading it again.
 *
 * It takes what GET /v1/detections takes, and an entry of its answer stands for a page there: a client reads the page
 * only where its own digest differs. Whatever changes without a new version is left out of the digest.
 */
import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Credential } from '../../auth/authorize.ts';
import { DIGESTS_MAX } from '../../limits/contract-limits.ts';
import { formatSeconds } from '../../time.ts';
import type { Answer, KeyedCall, KeyedRoute } from '../routes.ts';
import { endOf, firstPage, nextHeaders, type PeriodSources, pageOf, periodCall } from './period.ts';

const PATH = '/v1/digests';
/** A new address of the appliance makes no version. */
const NO_ADDRESS = Buffer.alloc(0);
/** Updated in place. A quotation mark within a value is escaped, so these are members; `id` comes before them. */
const IN_PLACE = /,"(?:last_scored_at|exported_at)":"[^"]*"/g;
/** Between two rows, and nowhere else in JSON text does an object with an id follow on another. */
const BETWEEN_ROWS = /(?<=\}),(?=\{"id":")/;

export function digestsRoute(sources: PeriodSources): KeyedRoute {
  return {
    path: PATH,
    method: 'GET',
    head: false,
    access: 'key',
    scope: 'detections:read',
    readsDetections: true,
    answer: (call, credential) => answerDigests(sources, call, credential),
  };
}

async function answerDigests(
  sources: PeriodSources,
  call: KeyedCall,
  credential: Credential,
): Promise<Answer> {
  const period = periodCall(sources, call, credential);
  let { walk, page } = firstPage(sources, period, NO_ADDRESS);
  const data: object[] = [];
  let cursor = period.asked.cursor;
  for (let pages = 1; ; pages += 1) {
    const end = endOf(sources, period, walk, page);
    if (page.last !== null) {
      const last = { id: page.last.id, first_detected_at: formatSeconds(page.last.second) };
      data.push({ cursor, rows: page.rows, last, digest: digestOf(page.data) });
    }
    if (page.next === null || pages === DIGESTS_MAX) {
      const headers = nextHeaders(sources, PATH, call, end.next_cursor);
      return { status: 200, rows: data.length, body: JSON.stringify({ data, ...end }), headers };
    }
    // Each page takes some milliseconds: others get their turn in between.
    await nextTurn();
    cursor = end.next_cursor;
    walk = { ...walk, place: page.next };
    page = pageOf(sources, period, walk, NO_ADDRESS);
  }
}

/** SHA-256 of the SHA-256 of each row, all in hexadecimal digits. */
function digestOf(data: readonly Buffer[]): string {
  const rows = `${Buffer.concat(data)}`.replaceAll(IN_PLACE, '').split(BETWEEN_ROWS);
  return hash('sha256', rows.map((row) => hash('sha256', row)).join(''));
}
