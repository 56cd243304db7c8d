/**
 * The change stream against itself, its deliveries and the detections, in one pass over its rows.
 *
 * Memory grows by four bytes a detection, and a row is read twice only where it is its detection's newest.
 */
import { streamParts } from '../detection/content-type.ts';
import { renderedMatchOf } from '../detection/match.ts';
import { RAISE_VERSIONS } from '../detection/raise.ts';
import type { Database, Statement } from '../store/database.ts';
import type { Findings } from './findings.ts';

const STREAM_ROWS = `
  SELECT position, stream, sequence, substr(body, 1, 128) AS start FROM stream_row ORDER BY position`;
const DELIVERIES = 'SELECT first_position, last_position, delivered_at FROM delivery ORDER BY first_position';
const HEADS = 'SELECT stream, sequence, position FROM stream_head ORDER BY stream';
const DETECTION = 'SELECT rowid, version, stream FROM detection WHERE id = ?';
const BODIES = `
  SELECT (SELECT body FROM detection WHERE rowid = :rowid) AS detection,
    (SELECT body FROM stream_row WHERE position = :position) AS stream_row`;
const DETECTIONS_COUNT = 'SELECT count(*) AS count FROM detection';
const DETECTION_IDS = 'SELECT rowid, id, version, stream FROM detection';

interface StreamRow {
  readonly position: number;
  readonly stream: number;
  readonly sequence: number;
  readonly start: string;
}

interface Delivery {
  readonly first_position: number;
  readonly last_position: number;
  readonly delivered_at: number | null;
}

interface Current {
  readonly rowid: number;
  readonly version: number;
  readonly stream: number;
}

const TELL_EVERY_ROWS = 10_000;

/**
 * @param db a reader with an open transaction: all is judged as of one moment
 * @param removed subscriptions whose rows are being deleted, and are not looked at
 */
export function checkStream(
  db: Database,
  findings: Findings,
  removed: ReadonlySet<number>,
  onRows: (rows: number) => void,
): void {
  const heads = new Map<number, { sequence: number; position: number }>();
  const deliveries = new DeliveryWalk(db, findings);
  const detections = new DetectionWalk(db, findings);
  let rows = 0;
  for (const row of db.prepare<unknown[], StreamRow>(STREAM_ROWS).iterate()) {
    const { position, stream, sequence } = row;
    deliveries.see(position);
    rows += 1;
    if (rows % TELL_EVERY_ROWS === 0) onRows(rows);
    if (removed.has(streamParts(stream).subscription_id)) continue;
    const expected = (heads.get(stream)?.sequence ?? 0) + 1;
    if (sequence !== expected) {
      findings.add(
        'sequences',
        `${nameOf(stream)}: the row at position ${position} has number ${sequence}, expected ${expected}`,
      );
    }
    heads.set(stream, { sequence, position });
    detections.see(row);
  }
  deliveries.end();
  detections.end(removed);
  checkHeads(db, heads, removed, findings);
}

function checkHeads(
  db: Database,
  seen: ReadonlyMap<number, { sequence: number; position: number }>,
  removed: ReadonlySet<number>,
  findings: Findings,
): void {
  const known = new Set<number>();
  const heads = db.prepare<unknown[], { stream: number; sequence: number; position: number }>(HEADS);
  for (const { stream, sequence, position } of heads.iterate()) {
    known.add(stream);
    if (removed.has(streamParts(stream).subscription_id)) continue;
    const last = seen.get(stream);
    if (last?.sequence === sequence && last.position === position) continue;
    const is =
      last === undefined ? 'there is no row' : `its last row is number ${last.sequence} at ${last.position}`;
    findings.add('sequences', `${nameOf(stream)}: its head says number ${sequence} at ${position}, ${is}`);
  }
  for (const stream of seen.keys())
    if (!known.has(stream)) findings.add('sequences', `${nameOf(stream)}: it has rows and no head`);
}

/**
 * Deliveries and rows, side by side in the order of positions. A delivery may have lost rows, or all of them: those of
 * a subscription that was removed.
 */
class DeliveryWalk {
  readonly #findings: Findings;
  readonly #deliveries: IterableIterator<Delivery>;
  #current: Delivery | null = null;
  #deliveredAt = 0;
  #isUnstamped = false;

  constructor(db: Database, findings: Findings) {
    this.#findings = findings;
    this.#deliveries = db.prepare<unknown[], Delivery>(DELIVERIES).iterate();
    this.#next();
  }

  see(position: number): void {
    while (this.#current !== null && position > this.#current.last_position) this.#next();
    if (this.#current === null || position < this.#current.first_position)
      this.#findings.add('deliveries', `the row at position ${position} belongs to no delivery`);
  }

  end(): void {
    while (this.#current !== null) this.#next();
  }

  #next(): void {
    const before = this.#current;
    const { value, done } = this.#deliveries.next();
    this.#current = done === true ? null : value;
    const now = this.#current;
    if (now === null) return;
    if (before !== null && now.first_position <= before.last_position) {
      this.#findings.add(
        'deliveries',
        `the deliveries that begin at ${before.first_position} and at ${now.first_position} overlap`,
      );
    }
    const at = `the delivery that begins at ${now.first_position}`;
    if (now.delivered_at === null) this.#isUnstamped = true;
    else {
      if (this.#isUnstamped) this.#findings.add('deliveries', `${at} has a time, but one before it has none`);
      if (now.delivered_at < this.#deliveredAt)
        this.#findings.add('deliveries', `${at} has an earlier time than the one before it`);
      this.#deliveredAt = now.delivered_at;
    }
  }
}

/** Each row against the detection it is a version of. */
class DetectionWalk {
  readonly #findings: Findings;
  readonly #db: Database;
  readonly #detection: Statement<Current>;
  readonly #bodies: Statement<{ detection: string | null; stream_row: string }>;
  /** The last version seen, by the detection's rowid. */
  readonly #versions = new SparseNumbers();
  #current = 0;

  constructor(db: Database, findings: Findings) {
    this.#db = db;
    this.#findings = findings;
    this.#detection = db.prepare<unknown[], Current>(DETECTION);
    this.#bodies = db.prepare<unknown[], { detection: string | null; stream_row: string }>(BODIES);
  }

  see({ position, stream, start }: StreamRow): void {
    const [, id = '', number = '', event = ''] = START.exec(start) ?? [];
    const at = `the row of the stream at position ${position}`;
    if (id === '') {
      this.#findings.add('detections', `${at} does not begin as a detection does`);
      return;
    }
    const version = Number(number);
    const known = this.#detection.get(id);
    if (known === undefined) {
      this.#findings.add('detections', `${at} is of ${id}, which is no detection`);
      return;
    }
    const before = this.#versions.get(known.rowid);
    // Versions go up one by one, or, where they were raised, by a thousand more.
    if (version <= before || (version - before - 1) % RAISE_VERSIONS !== 0)
      this.#findings.add('detections', `${at} has version ${version} of ${id}, after version ${before}`);
    if (known.stream !== stream)
      this.#findings.add('detections', `${at} is of ${id} and stands in ${nameOf(stream)}`);
    if ((version === 1) !== (event === 'created'))
      this.#findings.add('detections', `${at} says ${event} with version ${version} of ${id}`);
    if (before === known.version) this.#current -= 1;
    this.#versions.set(known.rowid, version);
    if (version !== known.version) return;
    this.#current += 1;
    const bodies = this.#bodies.get({ rowid: known.rowid, position });
    if (bodies !== undefined && content(bodies.detection ?? '') !== content(bodies.stream_row))
      this.#findings.add('detections', `${id} differs from ${at}, which is its newest`);
  }

  end(removed: ReadonlySet<number>): void {
    const count = this.#db.prepare<unknown[], { count: number }>(DETECTIONS_COUNT).get()?.count ?? 0;
    if (count === this.#current) return;
    for (const { rowid, id, version, stream } of this.#db
      .prepare<unknown[], Current & { id: string }>(DETECTION_IDS)
      .iterate()) {
      if (removed.has(streamParts(stream).subscription_id)) continue;
      const last = this.#versions.get(rowid);
      if (version === last) continue;
      const newest =
        last === 0 ? 'the stream has no row of it' : `the newest row of the stream has version ${last}`;
      this.#findings.add('detections', `${id} has version ${version}; ${newest}`);
    }
  }
}

const START = /^\{"id":"([^"]+)","version":(\d+),"event":"(created|updated)",/;
/** These are brought up to date in place, without a new version. */
const IN_PLACE = /"last_scored_at":"[^"]*","exported_at":"[^"]*",/;

function content(body: string): string {
  return renderedMatchOf(body).replace(IN_PLACE, '');
}

function nameOf(stream: number): string {
  const { subscription_id, content_type } = streamParts(stream);
  return `the ${content_type} stream of subscription ${subscription_id}`;
}

const CHUNK = 65_536;

/** Whole numbers below 2^32 by an index that may be large; 0 where none was set. */
class SparseNumbers {
  readonly #chunks = new Map<number, Uint32Array>();

  get(index: number): number {
    return this.#chunks.get(Math.floor(index / CHUNK))?.[index % CHUNK] ?? 0;
  }

  set(index: number, value: number): void {
    const at = Math.floor(index / CHUNK);
    const chunk = this.#chunks.get(at) ?? new Uint32Array(CHUNK);
    this.#chunks.set(at, chunk);
    chunk[index % CHUNK] = value;
  }
}
