/** Damages a database, one place at a time, and reads its change stream. */

import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { type ContentType, streamName } from '../../src/detection/content-type.ts';
import { type ChangesQuery, readChangesPage } from '../../src/query/changes-page.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { NO_FILTERS } from './filters.ts';
import { seededPrng } from './seeded-prng.ts';
import { createTestStore, type TestRow } from './store.ts';

export type Kind = 'bit' | 'block';

/** What clients receive from a damaged database. */
export type Outcome =
  /** Every row, unchanged. */
  | 'unchanged'
  /** Every row in order, but the text of one has changed. */
  | 'other text'
  /** Every row with its text and each stream in order, but the streams are interleaved differently. */
  | 'streams interleaved differently'
  | 'refused'
  /** Missing, extra or reordered rows, or bytes that are not text: must never happen. */
  | 'wrong rows';

const BLOCK_BYTES = 64;
const STREAMS = [7001, 7002].flatMap((id) => [streamName(id, 'text'), streamName(id, 'image')]);

/**
 * Flips a bit or overwrites a block of a database with 3,000 rows, each time at another random place, and reads the
 * change stream after each.
 *
 * @returns the count of each outcome
 */
export function damageRandomly(kind: Kind, times: number, seed: string): Record<Outcome, number> {
  const store = createTestStore(7);
  const prng = seededPrng(seed, kind);
  const types: ContentType[] = ['text', 'image'];
  for (let transaction = 1; transaction <= 60; transaction += 1) {
    const rows = Array.from({ length: 50 }, (_, index): TestRow => {
      const at = transaction * 50 + index;
      return {
        content_type: types[prng.below(2)] ?? 'text',
        version: 1,
        row: {
          subscription_id: 7001 + prng.below(2),
          article_id: at,
          article_headline: `Headline ${at} “ü”`,
        },
      };
    });
    store.deliver(rows, transaction * 10);
  }
  store.writer.pragma('wal_checkpoint(TRUNCATE)');
  const file = openSync(store.path, 'r+');
  const sound = readFileSync(store.path);
  const before = walk(store.reader);
  store.reader.close();
  store.writer.close();
  const outcomes: Record<Outcome, number> = {
    unchanged: 0,
    'other text': 0,
    'streams interleaved differently': 0,
    refused: 0,
    'wrong rows': 0,
  };
  try {
    for (let time = 0; time < times; time += 1) {
      const length = kind === 'bit' ? 1 : BLOCK_BYTES;
      const at = prng.below(sound.length - length);
      const damaged = Buffer.from(sound.subarray(at, at + length));
      if (kind === 'bit') damaged.writeUInt8(damaged.readUInt8() ^ (1 << prng.below(8)));
      else for (let byte = 0; byte < length; byte += 1) damaged.writeUInt8(prng.below(256), byte);
      writeSync(file, damaged, 0, length, at);
      outcomes[outcomeOf(store.path, before)] += 1;
      writeSync(file, sound, at, length, at);
    }
  } finally {
    closeSync(file);
    store.close();
  }
  return outcomes;
}

function outcomeOf(path: string, before: Buffer): Outcome {
  let db: Database | null = null;
  try {
    db = openDatabase(path, 'read');
    const after = walk(db);
    if (after.equals(before)) return 'unchanged';
    // Overwritten text leaves everything else in place.
    const isSameLength = after.length === before.length;
    let changed = 0;
    for (let at = 0; isSameLength && at < after.length; at += 1) if (after[at] !== before[at]) changed += 1;
    if (isSameLength && isUtf8(after) && changed <= BLOCK_BYTES) return 'other text';
    return isSameLength && byStream(after) === byStream(before)
      ? 'streams interleaved differently'
      : 'wrong rows';
  } catch (error) {
    if (isDamage(error)) return 'refused';
    throw error;
  } finally {
    db?.close();
  }
}

/** The rows, grouped by stream. */
function byStream(pages: Buffer): string {
  const rows: { subscription_id: number; content_type: string }[] = JSON.parse(
    `[${pages.toString().replaceAll('}{"id":', '},{"id":')}]`,
  );
  const streams = Map.groupBy(rows, (row) => `${row.subscription_id} ${row.content_type}`);
  return JSON.stringify([...streams].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Reads from the start until has_more is false. */
function walk(db: Database): Buffer {
  const pages: Buffer[] = [];
  const query: Omit<ChangesQuery, 'start'> = {
    streams: STREAMS,
    content_types: ['text', 'image'],
    filters: NO_FILTERS,
    limit: 1000,
    projection: null,
    baseUrl: Buffer.from('https://api.example'),
    recentDeliveries: new Map(),
  };
  for (let position = 0; ; ) {
    const page = readChangesPage(db, { ...query, start: { kind: 'after', position } });
    if (page.rows > 0) pages.push(page.data);
    position = page.position;
    if (!page.has_more) break;
  }
  return Buffer.concat(pages);
}
