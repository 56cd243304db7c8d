/**
 * Compares a copy with the service, without false differences for a correct client.
 *
 * The service returns a digest of each page of a period (GET /v1/digests). A page is read only if the digest of the same
 * rows of the copy differs. Ignored are `last_scored_at` and `exported_at`, which change without a new version, the
 * address of the service in `source.image_url`, and detections that changed after the last update of the copy. Those are
 * on the stream after the copy's cursor. The stream is read last, so it contains every change made meanwhile.
 */
import { hash } from 'node:crypto';
import { Refused } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { type Api, ChangesPage, type Detection, DigestsPage, LIMIT, PeriodPage, Schema } from './api.ts';
import type { Copy, Step } from './copy.ts';
import { textOf, valueAt } from './csv.ts';
import {
  CHANGES,
  isSelected,
  PERIOD,
  queryOf,
  type Start,
  shownStep,
  stepsOf,
  streamName,
  type Work,
} from './procedures.ts';

export interface Comparison {
  /** Detections of the copy. */
  readonly detections: number;
  /** Detections that differ, but changed after the copy was updated. */
  readonly changed_since: number;
  readonly differences: readonly Difference[];
}

export interface Difference {
  readonly id: string;
  readonly kind: 'not in the copy' | 'not in the service' | 'other version' | 'other content';
  /** Null if it is missing. */
  readonly copy_version: number | null;
  readonly service_version: number | null;
}

/** Captures an address of a photo without that of the service. */
const OWN_ADDRESS = /^.*(\/photos\/\d+\?signature=.*)$/;
const NOT_COMPARED = new Set(['event', 'last_scored_at', 'exported_at']);

interface Own {
  readonly id: string;
  readonly version: number;
  readonly first_detected_at: string;
  readonly stream: string;
  /** SHA-256 of the compared members. */
  readonly digest: string;
}

/** @throws Refused `failed` for a copy or an answer that cannot be read */
export async function compareCopy({ api, copy, start, onPage }: Work): Promise<Comparison> {
  const { fields } = (await api.get('/v1/schema/detection', Schema)).body;
  const paths = fields.map(({ path }) => path).filter((path) => !NOT_COMPARED.has(path));
  // Before the rows: a row that is newer than the cursor counts as changed.
  const { cursor } = copy.position();
  // The rows that the service has not returned yet.
  const own = await readOwn(copy, start, paths);
  const detections = own.size;
  const found = new Map<string, Difference>();
  const note = (id: string, kind: Difference['kind'], copied: number | null, served: number | null) =>
    found.set(id, { id, kind, copy_version: copied, service_version: served });
  // A period ends now; the clock of the matching system may be ahead.
  const isDue = (row: Own) => !(Date.parse(row.first_detected_at) > start.dateMs - SECOND_MS);
  const streams = Map.groupBy([...own.values()].filter(isDue).sort(inPeriod), ({ stream }) => stream);
  for (const step of stepsOf(start)) {
    const mine = streams.get(streamName(step)) ?? [];
    for await (const rows of differingPages(api, step, mine, (row) => own.delete(row.id))) {
      for (const row of rows) {
        const { id, version } = row;
        const copied = own.get(id);
        own.delete(id);
        if (copied === undefined) note(id, 'not in the copy', null, version);
        else if (copied.version !== version) note(id, 'other version', copied.version, version);
        else if (copied.digest !== digestOf(row, paths)) note(id, 'other content', version, version);
      }
      onPage(shownStep(step), rows.length, 0);
    }
  }
  for (const { id, version } of [...own.values()].filter(isDue))
    note(id, 'not in the service', version, null);
  const begun = cursor === null ? { since: start.since } : { cursor };
  let changed_since = 0;
  const query = { ...start.selection, ...begun, fields: 'id', limit: LIMIT };
  for await (const { body } of api.pages(CHANGES, ChangesPage, query))
    for (const { id } of body.data) if (found.delete(id)) changed_since += 1;
  return { detections, changed_since, differences: [...found.values()] };
}

/** Reads the detections of the copy, by id: the highest version of each. */
async function readOwn(
  copy: Copy,
  { selection }: Start,
  paths: readonly string[],
): Promise<Map<string, Own>> {
  const own = new Map<string, Own>();
  for await (const row of copy.rows()) {
    const { id, version } = row;
    if (!isSelected(selection, row) || version < (own.get(id)?.version ?? 0)) continue;
    const first_detected_at = String(row.first_detected_at);
    own.set(id, { id, version, first_detected_at, stream: streamName(row), digest: digestOf(row, paths) });
  }
  return own;
}

type Order = Pick<Own, 'id' | 'first_detected_at'>;

/** The order of a period: newest first, ties by id. */
function inPeriod(a: Order, b: Order): number {
  if (a.first_detected_at !== b.first_detected_at) return a.first_detected_at > b.first_detected_at ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/**
 * Reads the pages of a period that differ from the copy. Digests are not in the contract: from a service without them
 * it reads every page.
 *
 * @param mine rows of the copy from this period on, in its order; compared rows are removed
 */
async function* differingPages(
  api: Api,
  step: Step,
  mine: Own[],
  onEqual: (row: Own) => void,
): AsyncIterable<readonly Detection[]> {
  const query = queryOf(step);
  try {
    for await (const { body } of api.pages('/v1/digests', DigestsPage, query)) {
      for (const { cursor, last, digest } of body.data) {
        const after = mine.findIndex((row) => inPeriod(row, last) > 0);
        const rows = mine.splice(0, after < 0 ? mine.length : after);
        if (hash('sha256', rows.map((row) => row.digest).join('')) === digest) rows.forEach(onEqual);
        else yield (await api.get(PERIOD, PeriodPage, { ...query, cursor })).body.data;
      }
    }
  } catch (error) {
    if (!(error instanceof Refused && error.code === 'not_found')) throw error;
    for await (const { body } of api.pages(PERIOD, PeriodPage, query)) yield body.data;
  }
}

/** As the service calculates it. */
function digestOf(row: Detection, paths: readonly string[]): string {
  return hash('sha256', textOf(paths.map((path) => [path, comparedAt(row, path)])));
}

function comparedAt(row: Detection, path: string): unknown {
  const value = valueAt(row, path);
  return path === 'source.image_url' && typeof value === 'string' ? value.replace(OWN_ADDRESS, '$1') : value;
}
