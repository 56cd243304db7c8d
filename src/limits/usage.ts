/**
 * The file `usage`: counts of the running appliance that may be lost, in no log and no backup. A start reads it, and so
 * does whoever shows it. If it cannot be used, the start counts from zero.
 */
import { readFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { getOrMake } from '../get-or-make.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { paced } from '../pace.ts';
import { isErrorCode, reasonOf } from '../refused.ts';
import { SECOND_MS } from '../time.ts';
import { dayOf, type RowHolder, UsedRows } from './daily-rows.ts';
import { KeyUse, SeenKey } from './key-uses.ts';
import { type HourCounts, Refusals } from './request-counts.ts';

const UsageSchema = Type.Object({
  format: Type.Literal('wirewatch usage 1'),
  rows: Type.Array(UsedRows),
  uses: Type.Array(KeyUse),
  /** Oldest first. */
  seen: Type.Array(SeenKey),
  /** Members unchecked: there may be 10,000, and every view of the console would wait for that. */
  hours: Type.Array(Type.Unsafe<HourCounts>(Type.Object({}))),
  refusals: Type.Array(Refusals),
});

export type Usage = Static<typeof UsageSchema>;

export const NO_USAGE: Usage = Value.Create(UsageSchema);

/**
 * What the appliance wrote last; {@link NO_USAGE} if there is no file.
 * @returns null for a file that cannot be used, which the next write replaces; `onUnusable` is called with the reason
 */
export function readUsage(path: string, onUnusable: (reason: string) => void = () => {}): Usage | null {
  try {
    const json: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (Value.Check(UsageSchema, json)) return json;
    onUnusable('it belongs to another program, or another version');
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return NO_USAGE;
    // Without the words of JSON.parse, which quote the file.
    const isCut = error instanceof SyntaxError;
    onUnusable(isCut ? 'it is not JSON: empty, cut off or damaged' : reasonOf(error, path));
  }
  return null;
}

/** Replaces the file once the new one is on the disk, so that it is always complete. Blocks nothing meanwhile. */
export async function writeUsageFile(path: string, text: string): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.tmp`);
  try {
    await using file = await open(draft, 'w', 0o600);
    await file.writeFile(text);
    await file.sync();
    await rename(draft, path);
  } catch (error) {
    // Its room may be what the disk lacks.
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}

const WRITE_EVERY_MS = paced(2 * SECOND_MS);

/**
 * Writes the counts every two seconds and at a clean stop. A crash forgets the rows read since.
 * @param textNow the content of the file, as it is to be
 * @param onFailure called at the first of several failures in a row, and with null when a write succeeds again; no count is lost
 */
export function createUsageKeeper(path: string, textNow: () => string, onFailure: (error: unknown) => void) {
  let isFailing = false;
  /** Compared as it is, since most runs of a quiet appliance change nothing. */
  let written: string | null = null;

  async function writeNow(): Promise<void> {
    const text = textNow();
    if (text === written) return;
    try {
      await writeUsageFile(path, text);
      written = text;
      if (isFailing) onFailure(null);
      isFailing = false;
    } catch (error) {
      if (!isFailing) onFailure(error);
      isFailing = true;
    }
  }

  /** Never rejects. */
  const write = oneAtATime(writeNow);
  const timer = setInterval(write, WRITE_EVERY_MS).unref();
  return {
    write,
    async close() {
      clearInterval(timer);
      // Twice: a write in progress lacks the counts made since it began.
      await write();
      await write();
    },
  };
}

/** The use of the keys, by id, with the rows read on this UTC day. */
export function keyUsage(usage: Usage, nowMs: number) {
  const rows = rowsToday(usage, 'key', nowMs);
  return new Map(usage.uses.map(({ key_id: id, ...use }) => [id, { ...use, rows_today: rows.get(id) ?? 0 }]));
}

/** Rows that each key, by its id, or each account, by its accountUsageId, has read on this UTC day. */
export function rowsToday({ rows }: Usage, holder: RowHolder, nowMs: number): ReadonlyMap<string, number> {
  const today = rows.filter((count) => count.holder === holder && count.day === dayOf(nowMs));
  return new Map(today.map(({ id, rows }) => [id, rows]));
}

/** Refused requests of the last seven days by key, the most frequent first. */
export function refusalsByKey({ refusals }: Usage): ReadonlyMap<string, readonly Omit<Refusals, 'day'>[]> {
  const sums = new Map<string, Omit<Refusals, 'day'>>();
  for (const { key_id, code, count, last_at } of refusals) {
    const sum = getOrMake(sums, `${key_id} ${code}`, () => ({ key_id, code, count: 0, last_at: 0 }));
    sum.count += count;
    sum.last_at = Math.max(sum.last_at, last_at);
  }
  const sorted = [...sums.values()].sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
  return Map.groupBy(sorted, ({ key_id }) => key_id);
}
