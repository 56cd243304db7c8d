/**
 * The networks from which each key was proven within a day. In memory; usage-keeper.ts has them written, so that after a
 * start the clients of these networks are still known.
 */
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS, HOUR_MS } from '../time.ts';

/** As stored. */
export interface SeenKey {
  readonly key_id: string;
  /** Of {@link addressNetwork}. */
  readonly network: string;
  /** Of a proof: the last one within an hour, epoch milliseconds. */
  readonly seen_at: number;
}

export interface SeenKeys {
  /** Whether the key was proven from the network of this address within a day. */
  isSeen(keyId: string, address: string, nowMs: number): boolean;
  /** Call when the key was proven from this address. */
  markSeen(keyId: string, address: string, nowMs: number): void;
  /** Those that are not written yet. */
  unwritten(): SeenKey[];
  /** Call when these were written. */
  markWritten(seen: readonly SeenKey[]): void;
}

/** How long a key counts as seen after its last proof. */
export const SEEN_MS = DAY_MS;
/** Pairs of network and key. Each needs a valid key, so only large installations reach this. */
export const SEEN_MAX = 50_000;

/** @param stored oldest first */
export function createSeenKeys(stored: readonly SeenKey[] = [], seenMax = SEEN_MAX): SeenKeys {
  /** The time of the last proof. */
  const seen = new BoundedMap<string, number>(seenMax);
  const unwritten = new BoundedMap<string, SeenKey>(seenMax);
  for (const { key_id, network, seen_at } of stored) seen.set(pairOf(network, key_id), seen_at);
  return {
    isSeen(keyId, address, nowMs) {
      const lastMs = seen.get(pairOf(addressNetwork(address), keyId));
      // A time far ahead is from before the clock was set back.
      return lastMs !== undefined && Math.abs(nowMs - lastMs) < SEEN_MS;
    },
    markSeen(key_id, address, seen_at) {
      const network = addressNetwork(address);
      const pair = pairOf(network, key_id);
      const lastMs = seen.get(pair);
      seen.set(pair, seen_at);
      // Not each of a thousand requests is worth a write.
      if (lastMs === undefined || Math.floor(lastMs / HOUR_MS) !== Math.floor(seen_at / HOUR_MS))
        unwritten.set(pair, { key_id, network, seen_at });
    },
    unwritten: () => [...unwritten.values()],
    markWritten(written) {
      for (const one of written) {
        const pair = pairOf(one.network, one.key_id);
        if (unwritten.get(pair) === one) unwritten.delete(pair);
      }
    },
  };
}

function pairOf(network: string, keyId: string): string {
  return `${network} ${keyId}`;
}
