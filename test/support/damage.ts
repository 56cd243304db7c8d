/** Damages a database, one place at a time, and reads its change stream. */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { openDatabase } from '../../src/store/database.ts';
import { isDamage } from '../../src/store/database-errors.ts';
import { seededPrng } from './seeded-prng.ts';
import { createTestStore, type TestRow } from './store.ts';
import { readStream, STREAMS } from './streams.ts';

export type Kind = 'bit' | 'block';

/** What clients receive from a damaged database: every row and byte as it was, an error, or anything else. */
export type Outcome = 'unchanged' | 'refused' | 'wrong';

const BLOCK_BYTES = 64;

/**
 * Flips a bit or overwrites a block of a database with 3,000 rows, each time at another random place, and reads the
 * change stream after each: of all streams at once, and of each one.
 *
 * @returns the count of each outcome
 */
export function damageRandomly(kind: Kind, times: number, seed: string): Record<Outcome, number> {
  const store = createTestStore(7);
  const prng = seededPrng(seed, kind);
  for (let transaction = 1; transaction <= 60; transaction += 1) {
    const rows = Array.from({ length: 50 }, (_, index): TestRow => {
      const at = transaction * 50 + index;
      const row = { article_id: at, article_headline: `Headline ${at} “ü”` };
      const content_type = prng.pick(['text', 'image'] as const);
      return { content_type, version: 1, row: { subscription_id: 7001 + prng.below(2), ...row } };
    });
    store.deliver(rows, transaction * 10);
  }
  store.writer.pragma('wal_checkpoint(TRUNCATE)');
  const file = openSync(store.path, 'r+');
  const sound = readFileSync(store.path);
  const before = readAll(store.path);
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
      const read = readAll(store.path);
      outcomes[read === null ? 'refused' : read === before ? 'unchanged' : 'wrong'] += 1;
      writeSync(file, sound, at, length, at);
    }
  } finally {
    closeSync(file);
    store.close();
  }
  return outcomes;
}

/** Flips a bit of a file. @param at the byte; from the end if it is negative, in the middle by default */
export function flipBit(path: string, at?: number): void {
  const bytes = readFileSync(path);
  const found = (at ?? bytes.length >> 1) + (at !== undefined && at < 0 ? bytes.length : 0);
  bytes.writeUInt8(bytes.readUInt8(found) ^ 4, found);
  writeFileSync(path, bytes);
}

/** What clients read of all streams at once, and of each; null: it is refused. */
export function readAll(path: string): string | null {
  try {
    using db = openDatabase(path, 'read');
    return [STREAMS, ...STREAMS.map((stream) => [stream])]
      .map((streams) => readStream(db, { streams }))
      .join();
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}
