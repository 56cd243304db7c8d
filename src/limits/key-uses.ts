/** When each key was last used, and how far it has read the change stream. In memory; usage-keeper.ts has it written. */
import { type Static, Type } from '@sinclair/typebox';
import { BoundedMap } from '../bounded-map.ts';

/** One use as stored. */
export const KeyUse = Type.Readonly(
  Type.Object({
    key_id: Type.String(),
    /** Epoch milliseconds. */
    last_used_at: Type.Integer(),
    /** Of the last change stream cursor given to it; null: none. */
    position: Type.Union([Type.Integer(), Type.Null()]),
  }),
);
export type KeyUse = Static<typeof KeyUse>;

export interface KeyUses {
  /** Call for each response to this verified key, or to a token of it. @param position see {@link KeyUse} */
  note(keyId: string, nowMs: number, position?: number): void;
  /** The last use of each key, the latest use last. */
  all(): KeyUse[];
}

/** Keys, also revoked ones; only large installations that rotate for years reach this. */
const KEYS_MAX = 50_000;

/** @param stored the uses in earlier runs */
export function createKeyUses(stored: readonly KeyUse[] = []): KeyUses {
  const uses = new BoundedMap<string, KeyUse>(KEYS_MAX);
  for (const use of stored) uses.set(use.key_id, use);
  return {
    note(key_id, last_used_at, position = uses.get(key_id)?.position ?? undefined) {
      uses.set(key_id, { key_id, last_used_at, position: position ?? null });
    },
    all: () => [...uses.values()],
  };
}
