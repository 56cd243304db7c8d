/** When each key was last used, how far it has read, and from which networks it was proven: in memory and in `usage`. */
import { type Static, Type } from '@sinclair/typebox';
import { addressNetwork } from '../addresses.ts';
import { BoundedMap } from '../bounded-map.ts';
import { DAY_MS } from '../time.ts';

export const KeyUse = Type.Object({
  key_id: Type.String(),
  last_used_at: Type.Integer(),
  /** The position of the last change stream cursor given to it; null: it got none. */
  position: Type.Union([Type.Integer(), Type.Null()]),
});
type KeyUse = Static<typeof KeyUse>;

/** Keys, also revoked ones; only large installations that rotate for years reach this. */
const KEYS_MAX = 50_000;

export type KeyUses = ReturnType<typeof createKeyUses>;

export function createKeyUses(stored: readonly KeyUse[] = []) {
  const uses = new BoundedMap<string, KeyUse>(KEYS_MAX);
  for (const use of stored) uses.set(use.key_id, use);
  return {
    /** Call for each response to this verified key, or to a token of it. @param position see {@link KeyUse} */
    note(key_id: string, last_used_at: number, position = uses.get(key_id)?.position ?? undefined): void {
      uses.set(key_id, { key_id, last_used_at, position: position ?? null });
    },
    all: () => [...uses.values()],
  };
}

export const SeenKey = Type.Object({
  key_id: Type.String(),
  network: Type.String(),
  /** When it was last proven, epoch milliseconds. */
  seen_at: Type.Integer(),
});
type SeenKey = Static<typeof SeenKey>;

/** How long a key counts as seen after its last proof. */
const SEEN_MS = DAY_MS;
/** Pairs of network and key. Each needs a valid key, so only large installations reach this. */
const SEEN_MAX = 50_000;

export type SeenKeys = ReturnType<typeof createSeenKeys>;

/** The networks from which each key was proven within a day. @param stored oldest first */
export function createSeenKeys(stored: readonly SeenKey[] = []) {
  const seen = new BoundedMap<string, SeenKey>(SEEN_MAX);
  for (const proof of stored) seen.set(`${proof.network} ${proof.key_id}`, proof);
  // A time far ahead is from before the clock was set back.
  const counts = (proof: SeenKey, nowMs: number) => Math.abs(nowMs - proof.seen_at) < SEEN_MS;
  return {
    isSeen(keyId: string, address: string, nowMs: number): boolean {
      const last = seen.get(`${addressNetwork(address)} ${keyId}`);
      return last !== undefined && counts(last, nowMs);
    },
    /** Call when the key was proven from this address. */
    markSeen(key_id: string, address: string, seen_at: number): void {
      const network = addressNetwork(address);
      seen.set(`${network} ${key_id}`, { key_id, network, seen_at });
    },
    /** The proofs that still count, oldest first. */
    all: (nowMs: number) => [...seen.values()].filter((proof) => counts(proof, nowMs)),
  };
}
