/**
 * GET /v1/digests: the pages of a period as digests, so that a client can verify its copy without reading it again.
 *
 * It takes the parameters of GET /v1/detections, and each entry is the digest of a page there: a client reads only the
 * pages whose digest differs. Members that change without a new version are left out.
 */
import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Credential } from '../../auth/authorize.ts';
import { DIGESTS_MAX } from '../../limits/contract-limits.ts';
import { formatSeconds } from '../../time.ts';
import { type Answer, detectionsRoute, type KeyedCall, type KeyedRoute } from '../routes.ts';
import { endOf, firstPage, nextHeaders, type PeriodSources, pageOf, periodCall } from './period.ts';

const PATH = '/v1/digests';
/** A new base address makes no version. */
const NO_ADDRESS = Buffer.alloc(0);
/** Members that are updated in place. Quotation marks within a value are escaped, so only members match. */
const IN_PLACE = /,"(?:last_scored_at|exported_at)":"[^"]*"/g;
/** Between two rows: nowhere else in the JSON text does an object with an id follow another. */
const BETWEEN_ROWS = /(?<=\}),(?=\{"id":")/;

export function digestsRoute(sources: PeriodSources): KeyedRoute {
  return detectionsRoute(PATH, (call, credential) => answerDigests(sources, call, credential));
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
    // Each page takes some milliseconds: other requests run in between.
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
