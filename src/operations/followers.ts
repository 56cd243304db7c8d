/**
 * The use of keys, and how far the followers of the change stream are behind: each key's last cursor against the head of
 * its streams.
 */
import { type Key, keyStatus, listKeys } from '../auth/keys.ts';
import { listSubscriptions, type Subscription } from '../auth/subscriptions.ts';
import { type StreamName, streamName } from '../detection/content-type.ts';
import { getOrMake } from '../get-or-make.ts';
import { keyUsage, NO_USAGE, readUsage } from '../limits/usage.ts';
import { deliveredAtMs } from '../query/delivery.ts';
import { storedStreams } from '../query/stored-streams.ts';
import { edgesAt } from '../query/stream-check.ts';
import { reasonOf } from '../refused.ts';
import { type Database, reading } from '../store/database.ts';
import { DAY_MS, formatMs, MINUTE_MS, SECOND_MS } from '../time.ts';
import type { Context } from './operation.ts';

/** Clients should poll every hour; one missed poll is tolerated. */
const BEHIND_MINUTES = 120;

export const FIRST_BEHIND = `
  SELECT min(position) AS position FROM stream_row WHERE place >> 34 = :ordinal AND position > :position`;

export type ActiveKeys = ReturnType<typeof readActiveKeys>;

/**
 * The active keys, how they were used, and the subscriptions of which they have rights.
 * @returns `unreadable`: why access.db cannot be read now; then nothing is known of keys
 */
export function readActiveKeys({ access, folder, nowMs }: Pick<Context, 'access' | 'folder' | 'nowMs'>) {
  const usage = keyUsage(readUsage(folder.usage) ?? NO_USAGE, nowMs);
  try {
    const active = listKeys(access()).filter((key) => keyStatus(key, nowMs) === 'active');
    const subscriptions = new Map(listSubscriptions(access()).map((one) => [one.id, one]));
    return { active, usage, subscriptions, unreadable: null };
  } catch (error) {
    const subscriptions = new Map<number, Subscription>();
    return { active: [], usage, subscriptions, unreadable: reasonOf(error) };
  }
}

/** The keys that follow the change stream, each with how far it is behind. */
export function followersOf(db: Database, { active, usage, subscriptions }: ActiveKeys, nowMs: number) {
  return active.flatMap((key) => {
    const position = usage.get(key.id)?.position ?? null;
    if (position === null) return [];
    const state = followerState(db, streamsOfKey(key, subscriptions), position, nowMs);
    return [{ account: key.account_id, key_id: key.id, name: key.name, ...state }];
  });
}

export function keysDocument(keys: ActiveKeys, followers: ReturnType<typeof followersOf>, nowMs: number) {
  const { active, usage, unreadable } = keys;
  const uses = active.flatMap(({ id }) => usage.get(id)?.last_used_at ?? []);
  return {
    active: active.length,
    used_in_last_day: uses.filter((ms) => ms > nowMs - DAY_MS).length,
    last_used_at: uses.length === 0 ? null : formatMs(Math.max(...uses)),
    /** Active keys with a follower that is behind. */
    behind: followers.filter(({ behind }) => behind).length,
    unreadable,
  };
}

export function streamsOfKey(key: Key, subscriptions: ReadonlyMap<number, Subscription>): StreamName[] {
  return key.subscriptions.flatMap(({ id, content_types }) => {
    const has = subscriptions.get(id)?.content_types ?? [];
    return has
      .filter((type) => content_types === null || content_types.includes(type))
      .map((type) => streamName(id, type));
  });
}

/** The changes in its streams after its last cursor, and the age of the oldest of them. */
function followerState(db: Database, names: readonly StreamName[], position: number, nowMs: number) {
  return reading(db, () => {
    const streams = storedStreams(db, names).filter((stream) => stream.position > position);
    let rows_behind = 0;
    // One by one: a statement for all of them would be compiled for each number of streams.
    for (const stream of streams)
      rows_behind += stream.sequence - (edgesAt(db, [stream], position).get(stream.ordinal) ?? 0);
    const seconds_behind = lagsAt(db, names, [{ atMs: nowMs, position }])[0] ?? 0;
    const minutes_behind = Math.floor((seconds_behind * SECOND_MS) / MINUTE_MS);
    return { rows_behind, seconds_behind, minutes_behind, behind: minutes_behind > BEHIND_MINUTES };
  });
}

/** Where a key was at a time: the position of its last cursor; null: it had none yet. */
export type Mark = Readonly<{ atMs: number; position: number | null }>;

/** For each mark, how old the oldest change in these streams was that the key had not been given by then, in seconds. */
export function lagsAt(db: Database, names: readonly StreamName[], marks: readonly Mark[]) {
  return reading(db, () => {
    const streams = storedStreams(db, names);
    const select = db.prepare<unknown[], number | null>(FIRST_BEHIND).pluck();
    const deliveredAfter = new Map<number, number>();
    const deliveredMs = (position: number) => {
      const firsts = streams.map(({ ordinal }) => select.get({ ordinal, position }) ?? Infinity);
      const first = Math.min(...firsts);
      return first === Infinity ? Infinity : (deliveredAtMs(db, first) ?? Infinity);
    };
    return marks.map(({ atMs, position }) => {
      if (position === null) return null;
      const sinceMs = getOrMake(deliveredAfter, position, () => deliveredMs(position));
      return Math.max(0, Math.floor((atMs - sinceMs) / SECOND_MS));
    });
  });
}
