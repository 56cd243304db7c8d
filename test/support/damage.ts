/** Damages a database, one place at a time, and reads its change stream. */

import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { type ContentType, streamName } from '../../src/detection/content-type.ts';
import { type ChangesQuery, readChangesPage } from '../../src/query/changes-page.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { NO_FILTERS } from './filters.ts';
import { seededPrng } from './seeded-prng.ts';
import { createTestStore, type TestRow } from './store.ts';

export type Kind = 'bit' | 'block';

/** What clients receive from a damaged database: every row and byte as it was, an error, or anything else. */
export type Outcome = 'unchanged' | 'refused' | 'wrong';

const BLOCK_BYTES = 64;
const STREAMS = [7001, 7002].flatMap((id) => [streamName(id, 'text'), streamName(id, 'image')]);

/**
 * Flips a bit or overwrites a block of a database with 3,000 rows, each time at another random place, and reads the
 * change stream after each: of all streams at once, and of each one.
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
  const outcomes: Record<Outcome, number> = { unchanged: 0, refused: 0, wrong: 0 };
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
    return walk(db).equals(before) ? 'unchanged' : 'wrong';
  } catch (error) {
    if (isDamage(error)) return 'refused';
    throw error;
  } finally {
    db?.close();
  }
}

function walk(db: Database): Buffer {
  return Buffer.concat(
    [STREAMS, ...STREAMS.map((stream) => [stream])].flatMap((streams) => pagesOf(db, streams)),
  );
}

/** Reads from the start until has_more is false. */
function pagesOf(db: Database, streams: ChangesQuery['streams']): Buffer[] {
  const pages: Buffer[] = [];
  const query: Omit<ChangesQuery, 'start'> = {
    streams,
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
  return pages;
}
