/** Reads the streams in a detections.db, and checks their invariants. */
import assert from 'node:assert/strict';
import { type ContentType, streamName } from '../../src/detection/content-type.ts';
import { streamOfId } from '../../src/detection/id.ts';
import { type ChangesQuery, readChangesPage } from '../../src/query/changes-page.ts';
import type { PeriodQuery } from '../../src/query/period-page.ts';
import type { Database } from '../../src/store/database.ts';
import { sequenceOf } from '../../src/store/stream-place.ts';
import { NO_FILTERS } from './filters.ts';

const TYPES: readonly ContentType[] = ['text', 'image'];
/** Those of the subscriptions 7001 and 7002. */
export const STREAMS = [7001, 7002].flatMap((id) => TYPES.map((type) => streamName(id, type)));

/** The start of a page of the change stream. */
export const after = (position: number, epoch = 0) => ({ kind: 'after', position, epoch }) as const;

/** What both lists are asked for by default: everything, in pages of 100. */
const EVERYTHING = {
  streams: STREAMS,
  content_types: TYPES,
  filters: NO_FILTERS,
  limit: 100,
  projection: null,
  baseUrl: Buffer.from('https://api.example'),
};

/** A query for the change stream, by default from its beginning on. */
export function changesQuery(more: Partial<ChangesQuery> = {}): ChangesQuery {
  return { ...EVERYTHING, start: after(0), recentDeliveries: new Map(), ...more };
}

/** A query for a period, by default for all of it, newest first. */
export function periodQuery(more: Partial<PeriodQuery> = {}): PeriodQuery {
  return { ...EVERYTHING, period: { from: 0, to: 2 ** 40 }, sort: 'descending', after: null, ...more };
}

/**
 * Reads the change stream as a client does, page by page.
 *
 * @param from the position to begin after; @returns the rows as they are served, separated by commas
 */
export function readStream(db: Database, { from = 0, ...more }: Partial<StreamRead> = {}): string {
  const pages: Buffer[] = [];
  for (let position = from; ; ) {
    const page = readChangesPage(db, changesQuery({ ...more, start: after(position), limit: 1000 }));
    if (page.rows > 0) pages.push(page.data);
    if (!page.has_more) return pages.join(',');
    position = page.position;
  }
}

interface StreamRead extends Pick<ChangesQuery, 'streams' | 'baseUrl'> {
  readonly from: number;
}

type StreamRow = Readonly<{ stream: string; place: number; version: number; body: string }>;

type Head = Readonly<{ stream: string; ordinal: number; sequence: number; position: number }>;

const SELECT_ROWS = `
  SELECT subscription_id || ':' || content_type AS stream, place, version, body
  FROM stream_row JOIN stream ON ordinal = place >> 34 ORDER BY stream_row.position`;
const SELECT_HEADS = `
  SELECT subscription_id || ':' || content_type AS stream, ordinal, sequence, position FROM stream WHERE removed = 0`;
const SELECT_CURRENT = `
  SELECT id, version, row.body AS announced, rescored.body AS rescored
  FROM detection LEFT JOIN stream_row AS row USING (place) LEFT JOIN rescored USING (place)`;
const LAST_POSITION = 'SELECT max(position) FROM stream_row WHERE place >> 34 = ?';
const SELECT_ORDINALS = 'SELECT ordinal FROM stream ORDER BY ordinal';
const LOST_TEXTS = 'SELECT count(*) FROM rescored WHERE place NOT IN (SELECT place FROM detection)';

/**
 * Checks that ordinals, sequences and versions have no gaps, and that each detection's last version is the current one.
 *
 * @throws AssertionError
 */
export function checkStreams(db: Database): void {
  const sequences = new Map<string, number>();
  const newest = new Map<string, { version: number; body: string }>();
  for (const { stream, place, version: stated, body } of db.prepare<[], StreamRow>(SELECT_ROWS).all()) {
    assert.equal(sequenceOf(place), (sequences.get(stream) ?? 0) + 1);
    sequences.set(stream, sequenceOf(place));
    const { id, version, event } = parse(body);
    assert.equal(version, stated);
    assert.equal(stream, streamOfId(id));
    assert.equal(version, (newest.get(id)?.version ?? 0) + 1);
    assert.equal(event, version === 1 ? 'created' : 'updated');
    newest.set(id, { version, body });
  }
  const heads = db.prepare<[], Head>(SELECT_HEADS).all();
  assert.deepEqual(new Map(heads.map(({ stream, sequence }) => [stream, sequence])), sequences);
  for (const { ordinal, position } of heads)
    assert.equal(db.prepare(LAST_POSITION).pluck().get(ordinal), position);
  const ordinals = db.prepare<[], number>(SELECT_ORDINALS).pluck().all();
  for (const [index, ordinal] of ordinals.entries()) assert.equal(ordinal, index + 1);
  const current = db
    .prepare<[], { id: string; version: number; announced: string; rescored: string | null }>(SELECT_CURRENT)
    .all();
  assert.equal(current.length, newest.size);
  for (const { id, version, announced, rescored } of current) {
    assert.deepEqual({ version, body: announced }, newest.get(id));
    if (rescored === null) continue;
    const { event: _, last_scored_at: __, exported_at: ___, ...shown } = parse(announced);
    const { last_scored_at: ____, exported_at: _____, ...now } = parse(rescored);
    assert.deepEqual(now, shown, 'a visible change was not announced on the stream');
  }
  assert.equal(db.prepare(LOST_TEXTS).pluck().get(), 0);
}

const parse = (body: string) => JSON.parse(body.replace('\u0001', 'https://example.org'));
