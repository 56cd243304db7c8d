/**
 * The networks from which each key was proven within a day. In memory; usage-keeper.ts has them written, so that after a
 * start the clients of these networks are still known.
 */
import { type Static, Type } from '@sinclair/typebox';
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS } from '../time.ts';

/** As stored. */
export const SeenKey = Type.Readonly(
  Type.Object({
    key_id: Type.String(),
    /** Of {@link addressNetwork}. */
    network: Type.String(),
    /** Of the last proof, epoch milliseconds. */
    seen_at: Type.Integer(),
  }),
);
export type SeenKey = Static<typeof SeenKey>;

export interface SeenKeys {
  /** Whether the key was proven from the network of this address within a day. */
  isSeen(keyId: string, address: string, nowMs: number): boolean;
  /** Call when the key was proven from this address. */
  markSeen(keyId: string, address: string, nowMs: number): void;
  /** The proofs that still count, oldest first. */
  all(nowMs: number): SeenKey[];
}

/** How long a key counts as seen after its last proof. */
export const SEEN_MS = DAY_MS;
/** Pairs of network and key. Each needs a valid key, so only large installations reach this. */
export const SEEN_MAX = 50_000;

/** @param stored oldest first */
export function createSeenKeys(stored: readonly SeenKey[] = [], seenMax = SEEN_MAX): SeenKeys {
  const seen = new BoundedMap<string, SeenKey>(seenMax);
  for (const one of stored) seen.set(pairOf(one.network, one.key_id), one);
  // A time far ahead is from before the clock was set back.
  const counts = (one: SeenKey, nowMs: number) => Math.abs(nowMs - one.seen_at) < SEEN_MS;
  return {
    isSeen(keyId, address, nowMs) {
      const last = seen.get(pairOf(addressNetwork(address), keyId));
      return last !== undefined && counts(last, nowMs);
    },
    markSeen(key_id, address, seen_at) {
      const network = addressNetwork(address);
      seen.set(pairOf(network, key_id), { key_id, network, seen_at });
    },
    all: (nowMs) => [...seen.values()].filter((one) => counts(one, nowMs)),
  };
}

function pairOf(network: string, keyId: string): string {
  return `${network} ${keyId}`;
}
