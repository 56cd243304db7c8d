/**
 * Compares a copy with the service, without false differences for a correct client.
 *
 * It reads the periods again, page by page, and takes each row that it meets off a list of the copy: what is left, the
 * service does not have. Ignored are `last_scored_at` and `exported_at`, which change without a new version, the address
 * of the service in `source.image_url`, and detections that changed after the last update of the copy. Those are on the
 * stream after the copy's cursor. The stream is read last, so it contains every change made meanwhile.
 */
import { hash } from 'node:crypto';
import { Value } from '@sinclair/typebox/value';
import { isObject } from '../../is-object.ts';
import { SECOND_MS } from '../../time.ts';
import { ChangesPage, type Detection, LIMIT, PeriodPage } from './api.ts';
import { type Copy, Stream } from './copy.ts';
import {
  CHANGES,
  PERIOD,
  placeIn,
  queryOf,
  readStreams,
  type Start,
  shownStep,
  stepsOf,
  streamName,
  type Work,
} from './procedures.ts';

export type Comparison = Awaited<ReturnType<typeof compareCopy>>;

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

/**
 * A row of the copy. `due`: a period contains it by now; `ahead`: not yet; `not_read`: the key does not read its stream.
 * `digest`: SHA-256 of the compared members.
 */
type Own = Readonly<{ version: number; state: 'due' | 'ahead' | 'not_read'; digest: string }>;

/** @throws Refused `failed` for a copy or an answer that cannot be read */
export async function compareCopy(work: Work) {
  const { api, copy, start, onPage } = work;
  // Before the rows: a row that is newer than the cursor counts as changed.
  const query = { ...placeIn(work), fields: 'id', limit: LIMIT };
  const { rows, streams } = await listRows(copy, start);
  const detections = rows.size;
  const notRead = [...rows.values()].filter(({ state }) => state === 'not_read').length;
  const found = new Map<string, Difference>();
  const note = (id: string, kind: Difference['kind'], copied: number | null, served: number | null) =>
    found.set(id, { id, kind, copy_version: copied, service_version: served });
  for (const step of stepsOf(start))
    for await (const { body } of api.pages(PERIOD, PeriodPage, queryOf(step))) {
      for (const row of body.data) {
        const { id, version } = row;
        const copied = rows.get(id);
        rows.delete(id);
        if (copied === undefined) note(id, 'not in the copy', null, version);
        else if (copied.version !== version) note(id, 'other version', copied.version, version);
        else if (copied.digest !== digestOf(row)) note(id, 'other content', version, version);
      }
      onPage(shownStep(step), body.data.length, 0);
    }
  for (const [id, { version, state }] of rows)
    if (state === 'due') note(id, 'not in the service', version, null);
  let changed_since = 0;
  for await (const { body } of api.pages(CHANGES, ChangesPage, query))
    for (const { id } of body.data) if (found.delete(id)) changed_since += 1;
  return {
    detections,
    /** Detections that differ, but changed after the copy was updated. */
    changed_since,
    /** Detections of streams that the key does not read, such as those of a removed subscription; they are not compared. */
    not_read: { detections: notRead, streams },
    differences: [...found.values()],
  };
}

/** The detections of the copy, the highest version of each, and the streams of those that the key does not read. */
async function listRows(copy: Copy, start: Start) {
  const rows = new Map<string, Own>();
  const read = new Set(readStreams(start).map(streamName));
  const notRead = new Set<string>();
  for await (const row of copy.rows()) {
    const { id, version } = row;
    // A period ends now; the clock of the matching system may be ahead.
    const isAhead = Date.parse(String(row.first_detected_at)) > start.dateMs - SECOND_MS;
    // The lines of another client may lack what names it.
    const stream = Value.Check(Stream, row) ? streamName(row) : null;
    const isRead = stream === null || read.has(stream);
    if (!isRead) notRead.add(stream);
    if (version < (rows.get(id)?.version ?? 0)) continue;
    const own = isAhead ? 'ahead' : 'due';
    rows.set(id, { version, state: isRead ? own : 'not_read', digest: digestOf(row) });
  }
  return { rows, streams: [...notRead].sort() };
}

function digestOf(row: Detection): string {
  const compared = Object.fromEntries(Object.entries(row).filter(([name]) => !NOT_COMPARED.has(name)));
  return hash('sha256', JSON.stringify(compared, comparedValue));
}

/** Members in the order of their names: the lines of another client may have any. */
function comparedValue(name: string, value: unknown): unknown {
  if (name === 'image_url' && typeof value === 'string') return value.replace(OWN_ADDRESS, '$1');
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
