/** What holds of the streams of every detections.db, however it came to be. */
import assert from 'node:assert/strict';
import type { Database } from '../../src/store/database.ts';

interface StreamRow {
  readonly position: number;
  readonly stream: number;
  readonly sequence: number;
  readonly body: string;
}

/**
 * Sequences without gaps, versions without gaps, and the last version of each detection is the current one.
 *
 * @throws AssertionError
 */
export function checkStreams(db: Database): void {
  const rows = db
    .prepare<[], StreamRow>('SELECT position, stream, sequence, body FROM stream_row ORDER BY position')
    .all();
  const sequences = new Map<number, number>();
  const newest = new Map<string, { version: number; body: string }>();
  for (const { stream, sequence, body } of rows) {
    assert.equal(sequence, (sequences.get(stream) ?? 0) + 1);
    sequences.set(stream, sequence);
    const { id, version, event } = parse(body);
    assert.equal(version, (newest.get(id)?.version ?? 0) + 1);
    assert.equal(event, version === 1 ? 'created' : 'updated');
    newest.set(id, { version, body });
  }
  const heads = db
    .prepare<[], { stream: number; sequence: number }>('SELECT stream, sequence FROM stream_head')
    .all();
  assert.deepEqual(new Map(heads.map(({ stream, sequence }) => [stream, sequence])), sequences);
  const current = db
    .prepare<[], { body: string; version: number }>('SELECT version, body FROM detection')
    .all();
  assert.equal(current.length, newest.size);
  for (const { version, body } of current) {
    const detection = parse(body);
    const announced = newest.get(detection.id);
    assert.ok(announced);
    assert.deepEqual([detection.version, version], [announced.version, announced.version]);
    const { event: _, last_scored_at: __, exported_at: ___, ...shown } = parse(announced.body);
    const { last_scored_at: ____, exported_at: _____, ...now } = detection;
    assert.deepEqual(now, shown, 'the stream announced what is current');
  }
}

function parse(body: string) {
  return JSON.parse(body.replace('\u0001', 'https://example.org'));
}
