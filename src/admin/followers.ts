/** How far the followers of the change stream are behind: each key's last cursor against the head of its streams. */
import type { Key } from '../auth/keys.ts';
import type { Subscription } from '../auth/subscriptions.ts';
import { type StreamName, streamName } from '../detection/content-type.ts';
import { deliveredAtMs } from '../query/latest-rows.ts';
import { storedStreams } from '../query/stored-streams.ts';
import { edgesAt } from '../query/stream-check.ts';
import { type Database, reading } from '../store/database.ts';
import { MINUTE_MS } from '../time.ts';

export interface FollowerState {
  /** Changes in its streams after its last cursor. */
  readonly rows_behind: number;
  /** Age of the oldest of them. */
  readonly minutes_behind: number;
  readonly behind: boolean;
}

/** Clients should poll every hour (contract: Incremental loading); one missed poll is tolerated. */
const BEHIND_MINUTES = 120;
/** As many as a page of the API reads; the statement for more would be compiled each time. */
const STREAMS_AT_ONCE = 20;

const FIRST_BEHIND = `
  SELECT min(position) AS position FROM stream_row WHERE place >> 34 = :ordinal AND position > :position`;

/** The streams that a key reads. */
export function streamsOfKey(key: Key, subscriptions: ReadonlyMap<number, Subscription>): StreamName[] {
  return key.subscriptions.flatMap(({ id, content_types }) => {
    const has = subscriptions.get(id)?.content_types ?? [];
    return has
      .filter((type) => content_types === null || content_types.includes(type))
      .map((type) => streamName(id, type));
  });
}

/** @param position of its last cursor */
export function followerState(
  db: Database,
  names: readonly StreamName[],
  position: number,
  nowMs: number,
): FollowerState {
  return reading(db, () => {
    const streams = storedStreams(db, names).filter((stream) => stream.position > position);
    let rows_behind = 0;
    let first = Number.POSITIVE_INFINITY;
    const firstBehind = db.prepare<unknown[], { position: number | null }>(FIRST_BEHIND);
    for (let at = 0; at < streams.length; at += STREAMS_AT_ONCE) {
      const some = streams.slice(at, at + STREAMS_AT_ONCE);
      const edges = edgesAt(db, some, position);
      for (const { ordinal, sequence } of some) {
        rows_behind += sequence - (edges.get(ordinal) ?? 0);
        first = Math.min(first, firstBehind.get({ ordinal, position })?.position ?? first);
      }
    }
    if (rows_behind === 0) return { rows_behind, minutes_behind: 0, behind: false };
    const sinceMs = deliveredAtMs(db, first) ?? nowMs;
    const minutes_behind = Math.max(0, Math.floor((nowMs - sinceMs) / MINUTE_MS));
    return { rows_behind, minutes_behind, behind: minutes_behind > BEHIND_MINUTES };
  });
}
