/**
 * Compares a copy with the service, without false differences for a correct client.
 *
 * The service tells digests of the pages of each period (GET /v1/digests); a page is read only where the digest of the
 * same rows of the copy differs. What is no difference: `last_scored_at` and `exported_at`, which change in place; the
 * address of the service in `source.image_url`, which makes no version; and what changed since the last update of the
 * copy. That is on the stream after its cursor, which is read last, so that it contains everything that can have changed
 * before.
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
  type Work,
} from './procedures.ts';

export interface Comparison {
  /** Detections of the copy. */
  readonly detections: number;
  /** Detections that differ, but changed after the copy was updated, and so are not compared. */
  readonly changed_since: number;
  readonly differences: readonly Difference[];
}

export interface Difference {
  readonly id: string;
  readonly kind: 'not in the copy' | 'not in the service' | 'other version' | 'other content';
  /** Null where there is none. */
  readonly copy_version: number | null;
  readonly service_version: number | null;
}

/** The address of the service comes before it. */
const OWN_ADDRESS = /^.*(\/photos\/\d+\?signature=.*)$/;
const NOT_COMPARED = new Set(['event', 'last_scored_at', 'exported_at']);

interface Own {
  readonly id: string;
  readonly version: number;
  readonly first_detected_at: string;
  readonly stream: string;
  /** SHA-256 of what is compared. */
  readonly digest: string;
}

/** @throws Refused `failed` for a copy or an answer that cannot be read */
export async function compareCopy({ api, copy, start, onPage }: Work): Promise<Comparison> {
  const { fields } = (await api.get('/v1/schema/detection', Schema)).body;
  const paths = fields.map(({ path }) => path).filter((path) => !NOT_COMPARED.has(path));
  // The cursor first: rows that are newer than it do no harm.
  const { cursor } = copy.position();
  // What the service has not shown yet.
  const own = await readOwn(copy, start, paths);
  const detections = own.size;
  const found = new Map<string, Difference>();
  const note = (id: string, kind: Difference['kind'], copied: number | null, served: number | null) =>
    found.set(id, { id, kind, copy_version: copied, service_version: served });
  // In no period before its time has come: the clock of the matching system is ahead.
  const isDue = (row: Own) => !(Date.parse(row.first_detected_at) > start.dateMs - SECOND_MS);
  const streams = Map.groupBy([...own.values()].filter(isDue).sort(inPeriod), ({ stream }) => stream);
  for (const step of stepsOf(start)) {
    const mine = streams.get(streamOf(step)) ?? [];
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
  const query = { ...start.selection, ...begun, fields: 'id', limit: LIMIT };
  let changed_since = 0;
  for await (const { body } of api.pages(CHANGES, ChangesPage, query))
    for (const { id } of body.data) if (found.delete(id)) changed_since += 1;
  return { detections, changed_since, differences: [...found.values()] };
}

function streamOf({ subscription_id, content_type }: Step | Detection): string {
  return `${subscription_id} ${content_type}`;
}

/** The detections of the copy by id, the highest version of each. */
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
    own.set(id, { id, version, first_detected_at, stream: streamOf(row), digest: digestOf(row, paths) });
  }
  return own;
}

type Order = Pick<Own, 'id' | 'first_detected_at'>;

/** The order of a period: the newest first, and of one second the ids ascending. */
function inPeriod(a: Order, b: Order): number {
  if (a.first_detected_at !== b.first_detected_at) return a.first_detected_at > b.first_detected_at ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/**
 * The pages of a period whose rows are not those of the copy, or every page of a service without digests: they are not
 * in the contract.
 *
 * @param mine what the copy has of the stream from this period on, in its order; what was compared is taken away
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
