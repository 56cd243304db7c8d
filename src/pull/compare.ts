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
import {
  type Api,
  ChangesPage,
  type Detection,
  DigestsPage,
  LIMIT,
  type Query,
  RangePage,
  Schema,
} from './api.ts';
import type { Copy, OnPage } from './copy.ts';
import { textOf, valueAt } from './csv.ts';
import { queryOf, type Start, type Step, shownStep, stepsOf } from './procedures.ts';
import { isSelected, parametersOf } from './selection.ts';

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
  /** Paths of the members that differ, where the version is the same. */
  readonly fields: readonly string[];
}

const ROWS_KEPT_MAX = 1000;
/** The address of the service comes before it. */
const OWN_ADDRESS = /^.*(\/photos\/\d+\?signature=.*)$/;
const NOT_COMPARED = new Set(['event', 'last_scored_at', 'exported_at']);

interface Place {
  readonly id: string;
  readonly first_detected_at: string;
}

interface Own extends Place {
  readonly stream: string;
  readonly version: number;
  /** SHA-256 of what is compared. */
  readonly digest: string;
}

interface Work {
  readonly api: Api;
  readonly onPage: OnPage;
  /** Of the members that are compared, in their order. */
  readonly paths: readonly string[];
  /** Of the copy what the service has not shown yet, by id. */
  readonly own: Map<string, Own>;
  readonly found: Map<string, Difference>;
  /** Of detections that differ in content, the service's row, for naming the members. */
  readonly differing: Map<string, Detection>;
  /** False once the service has said that it has none; then each page is read. */
  hasDigests: boolean;
}

/**
 * @param since where the stream is read from if the copy has no cursor: the time of its last update
 * @throws Refused `failed` for a copy or an answer that cannot be read
 */
export async function compareCopy(
  api: Api,
  copy: Copy,
  start: Start,
  { since, onPage }: { since: string; onPage: OnPage },
): Promise<Comparison> {
  const { fields } = (await api.get('/v1/schema/detection', Schema)).body;
  const paths = fields.map(({ path }) => path).filter((path) => !NOT_COMPARED.has(path));
  // The cursor first: rows that are newer than it do no harm.
  const { cursor } = copy.notes();
  const own = await readOwn(copy, start, paths);
  const detections = own.size;
  const work: Work = { api, onPage, paths, own, found: new Map(), differing: new Map(), hasDigests: true };
  // In no period before its time has come: the clock of the matching system is ahead.
  const isDue = (row: Own) => !(Date.parse(row.first_detected_at) > start.dateMs - SECOND_MS);
  const streams = Map.groupBy([...own.values()].filter(isDue).sort(lastFirst), ({ stream }) => stream);
  for (const step of stepsOf(start)) await comparePeriod(work, step, streams.get(streamOf(step)) ?? []);
  for (const { id, version } of [...own.values()].filter(isDue))
    note(work, id, 'not in the service', [version, null]);
  const begun = cursor === null ? { since } : { cursor };
  const changed = await changedIds(api, { ...parametersOf(start.selection), ...begun });
  await nameFields(copy, work);
  const differences = [...work.found.values()].filter(({ id }) => !changed.has(id));
  return { detections, changed_since: work.found.size - differences.length, differences };
}

function streamOf({ subscription_id, content_type }: Step | Detection): string {
  return `${subscription_id} ${content_type}`;
}

/** The detections of the copy, the highest version of each. */
async function readOwn(copy: Copy, { selection }: Start, paths: readonly string[]): Promise<Work['own']> {
  const own: Work['own'] = new Map();
  for await (const row of copy.rows()) {
    const { id, version, subscription_id, content_type } = row;
    if (!isSelected(selection, Number(subscription_id), String(content_type))) continue;
    if (version < (own.get(id)?.version ?? 0)) continue;
    const first_detected_at = String(row.first_detected_at);
    own.set(id, { id, version, first_detected_at, stream: streamOf(row), digest: digestOf(row, paths) });
  }
  return own;
}

/** Against the order of a period, which has the newest first, and of one second the ids ascending. */
function lastFirst(a: Place, b: Place): number {
  if (a.first_detected_at !== b.first_detected_at) return a.first_detected_at < b.first_detected_at ? -1 : 1;
  return a.id > b.id ? -1 : a.id < b.id ? 1 : 0;
}

/** @param mine what the copy has of the stream from this period on, with what comes first at the end */
async function comparePeriod(work: Work, step: Step, mine: Own[]): Promise<void> {
  const { api, own, onPage } = work;
  const query = queryOf(step);
  for (let cursor: string | null = null; ; ) {
    const digests = await digestsOf(work, { ...query, cursor });
    let next = digests?.next_cursor ?? null;
    for (const page of digests?.data ?? [{ cursor, last: null, digest: '' }]) {
      const rows: Own[] = [];
      for (let row = mine.at(-1); row !== undefined && page.last !== null; row = mine.at(-1)) {
        if (lastFirst(row, page.last) < 0) break;
        rows.push(row);
        mine.pop();
      }
      if (hash('sha256', rows.map(({ digest }) => digest).join('')) === page.digest) {
        for (const { id } of rows) own.delete(id);
        continue;
      }
      const { body } = await api.get('/v1/detections', RangePage, { ...query, cursor: page.cursor });
      for (const row of body.data) compareRow(work, row);
      onPage({ what: shownStep(step), rows: body.data.length, stored: 0 });
      if (digests === null) next = body.next_cursor;
    }
    if (next === null) return;
    cursor = next;
  }
}

/** @returns null where the service has none: they are not in the contract */
async function digestsOf(work: Work, query: Query): Promise<DigestsPage | null> {
  if (!work.hasDigests) return null;
  try {
    return (await work.api.get('/v1/digests', DigestsPage, query)).body;
  } catch (error) {
    work.hasDigests = !(error instanceof Refused && error.code === 'not_found');
    if (work.hasDigests) throw error;
    return null;
  }
}

function compareRow(work: Work, row: Detection): void {
  const { id, version } = row;
  const mine = work.own.get(id);
  work.own.delete(id);
  if (mine === undefined) note(work, id, 'not in the copy', [null, version]);
  else if (mine.version !== version) note(work, id, 'other version', [mine.version, version]);
  else if (mine.digest !== digestOf(row, work.paths)) {
    note(work, id, 'other content', [version, version]);
    if (work.differing.size < ROWS_KEPT_MAX) work.differing.set(id, row);
  }
}

function note(
  { found }: Work,
  id: string,
  kind: Difference['kind'],
  [copy_version, service_version]: [number | null, number | null],
): void {
  found.set(id, { id, kind, copy_version, service_version, fields: [] });
}

async function changedIds(api: Api, from: Query): Promise<Set<string>> {
  const changed = new Set<string>();
  for (let query: Query = { ...from, fields: 'id', limit: LIMIT }; ; ) {
    const { data, has_more, next_cursor } = (await api.get('/v1/detections/changes', ChangesPage, query))
      .body;
    for (const { id } of data) changed.add(id);
    if (!has_more) return changed;
    query = { ...query, since: null, cursor: next_cursor };
  }
}

/** Names the members in which rows of the same version differ. */
async function nameFields(copy: Copy, { paths, found, differing }: Work): Promise<void> {
  if (differing.size === 0) return;
  for await (const mine of copy.rows()) {
    const [row, difference] = [differing.get(mine.id), found.get(mine.id)];
    if (row === undefined || difference === undefined || row.version !== mine.version) continue;
    const fields = paths.filter(
      (path) => JSON.stringify(comparedAt(row, path)) !== JSON.stringify(comparedAt(mine, path)),
    );
    found.set(mine.id, { ...difference, fields });
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
