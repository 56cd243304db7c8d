/**
 * Compares a copy with the service, without false differences for a correct client.
 *
 * Three things can differ although a copy is correct. A match that is scored again without a visible change keeps its
 * version and is not on the change stream: `last_scored_at` and `exported_at` are not compared. `source.image_url`
 * contains the address of the appliance, and a new address makes no version: only the rest is compared. And changes
 * since the last update of the copy are on the stream after its cursor: the stream is read after the periods, so that
 * it contains everything that can have changed before they were read.
 */
import { hash } from 'node:crypto';
import { SECOND_MS } from '../time.ts';
import { type Detection, readChangesPage, readRangePage } from './answers.ts';
import type { Api } from './api.ts';
import type { OnPage } from './copy.ts';
import type { CopyRows } from './copy-rows.ts';
import { type Start, shownStep, stepsOf } from './full-copy.ts';
import { isSelected, parametersOf, type Selection } from './selection.ts';

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

const LIMIT = 1000;

/** Of detections that differ in content, the service's row, for naming the members. */
const ROWS_KEPT_MAX = 1000;

interface Own {
  readonly version: number;
  readonly digest: string;
  /** In no period before its time has come: the clock of the matching system is ahead. */
  readonly isFuture: boolean;
}

type Found = Difference & { readonly row?: Detection };

/**
 * @param since where the stream is read from if the copy has no cursor: the time of its last update
 * @throws Refused `failed` for a copy or an answer that cannot be read
 */
export async function compareCopy(
  api: Api,
  copy: CopyRows,
  start: Start,
  since: string,
  onPage: OnPage,
): Promise<Comparison> {
  const own = await readOwn(copy, start);
  const detections = own.size;
  const found = new Map<string, Found>();
  for (const step of stepsOf(start)) {
    const query = { ...step, time_zone: 'UTC', limit: LIMIT };
    for (let cursor: string | undefined; ; ) {
      const page = readRangePage((await api.get('/v1/detections', { ...query, cursor })).body);
      for (const row of page.data) compareRow(own, row, found);
      onPage({ what: shownStep(step), rows: page.data.length, stored: 0 });
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
  }
  for (const [id, { version, isFuture }] of own) {
    if (!isFuture) found.set(id, difference(id, 'not in the service', version, null));
  }
  const changed = await changedIds(
    api,
    start.selection,
    copy.cursor === null ? { since } : { cursor: copy.cursor },
  );
  const kept = [...found.values()].filter(({ id }) => !changed.has(id));
  await nameFields(copy, kept);
  return {
    detections,
    changed_since: found.size - kept.length,
    differences: kept.map(({ row: _, ...rest }) => rest),
  };
}

/** Detections that are left in `own` at the end are not in the service. */
function compareRow(own: Map<string, Own>, row: Detection, found: Map<string, Found>): void {
  const { id, version } = row;
  const mine = own.get(id);
  own.delete(id);
  if (mine === undefined) found.set(id, difference(id, 'not in the copy', null, version));
  else if (mine.version !== version) found.set(id, difference(id, 'other version', mine.version, version));
  else if (mine.digest !== digestOf(row)) {
    const differs = difference(id, 'other content', mine.version, version);
    found.set(id, found.size < ROWS_KEPT_MAX ? { ...differs, row } : differs);
  }
}

function difference(
  id: string,
  kind: Difference['kind'],
  copy_version: number | null,
  service_version: number | null,
): Difference {
  return { id, kind, copy_version, service_version, fields: [] };
}

/** The detections of the copy, the highest version of each: an NDJSON copy contains earlier ones, too. */
async function readOwn(copy: CopyRows, { selection, dateMs }: Start): Promise<Map<string, Own>> {
  const own = new Map<string, Own>();
  for await (const row of copy.rows()) {
    const { id, version, subscription_id, content_type, first_detected_at } = row;
    if (!isSelected(selection, Number(subscription_id), String(content_type))) continue;
    if (version < (own.get(id)?.version ?? 0)) continue;
    const isFuture = Date.parse(String(first_detected_at)) > dateMs - SECOND_MS;
    own.set(id, { version, digest: digestOf(row), isFuture });
  }
  return own;
}

async function changedIds(
  api: Api,
  selection: Selection,
  from: { readonly since?: string; readonly cursor?: string },
): Promise<Set<string>> {
  const changed = new Set<string>();
  const query = { ...parametersOf(selection), fields: 'id', limit: LIMIT };
  for (let start = from; ; ) {
    const page = readChangesPage((await api.get('/v1/detections/changes', { ...query, ...start })).body);
    for (const { id } of page.data) changed.add(id);
    if (!page.has_more) return changed;
    start = { cursor: page.next_cursor };
  }
}

/** Names the members in which rows of the same version differ. */
async function nameFields(copy: CopyRows, found: Found[]): Promise<void> {
  const places = new Map(found.flatMap(({ id, row }, at) => (row === undefined ? [] : [[id, at] as const])));
  if (places.size === 0) return;
  for await (const mine of copy.rows()) {
    const at = places.get(mine.id);
    const differs = at === undefined ? undefined : found[at];
    if (at === undefined || differs?.row?.version !== mine.version) continue;
    const [ours, theirs] = [membersOf(mine), membersOf(differs.row)];
    const paths = new Set([...ours.keys(), ...theirs.keys()]);
    found[at] = { ...differs, fields: [...paths].filter((path) => ours.get(path) !== theirs.get(path)) };
  }
}

function digestOf(row: Detection): string {
  return hash('sha256', JSON.stringify([...membersOf(row)].sort()), 'base64');
}

/** What is compared of a detection: its members by path, as JSON, whatever their order. */
function membersOf(row: Detection): Map<string, string> {
  const members = new Map<string, string>();
  const { event: _event, last_scored_at: _scored, exported_at: _exported, ...compared }: Detection = row;
  collect(compared, '', members);
  const photo = members.get('source.image_url');
  const own = photo === undefined ? null : /\/photos\/\d+\?signature=.*$/.exec(photo);
  if (own !== null) members.set('source.image_url', own[0]);
  return members;
}

function collect(value: unknown, path: string, members: Map<string, string>): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    members.set(path, JSON.stringify(value));
    return;
  }
  for (const [name, member] of Object.entries(value))
    collect(member, path === '' ? name : `${path}.${name}`, members);
}
