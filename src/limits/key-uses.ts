/** When each key was last used, for those who look after keys. Noted in memory; usage-keeper.ts has it written. */

/** As it is stored. */
export interface KeyUse {
  readonly key_id: string;
  /** Epoch milliseconds. */
  readonly last_used_at: number;
}

export interface KeyUses {
  /** A request was answered for this key, which was proven, or for a token of it. */
  note(keyId: string, nowMs: number): void;
  /** Uses that are not written yet: as many as keys were used since. */
  unwritten(): KeyUse[];
  /** Takes note that these were written; what was used again since stays unwritten. */
  markWritten(uses: readonly KeyUse[]): void;
}

export function createKeyUses(): KeyUses {
  const unwritten = new Map<string, number>();
  return {
    note: (keyId, nowMs) => void unwritten.set(keyId, nowMs),
    unwritten: () => [...unwritten].map(([key_id, last_used_at]) => ({ key_id, last_used_at })),
    markWritten(uses) {
      for (const { key_id, last_used_at } of uses)
        if (unwritten.get(key_id) === last_used_at) unwritten.delete(key_id);
    },
  };
}
