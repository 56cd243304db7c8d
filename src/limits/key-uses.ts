/**
 * When each key was last used, and how far it follows the change stream, for those who look after keys. Noted in memory;
 * usage-keeper.ts has it written.
 */

/** As it is stored. */
export interface KeyUse {
  readonly key_id: string;
  /** Epoch milliseconds. */
  readonly last_used_at: number;
  /** Of the cursor of the change stream that it was given last; null: none since this was written last. */
  readonly position: number | null;
}

export interface KeyUses {
  /** A request was answered for this key, which was proven, or for a token of it. @param position see {@link KeyUse} */
  note(keyId: string, nowMs: number, position?: number): void;
  /** Uses that are not written yet: as many as keys were used since. */
  unwritten(): KeyUse[];
  /** Takes note that these were written; what was used again since stays unwritten. */
  markWritten(uses: readonly KeyUse[]): void;
}

export function createKeyUses(): KeyUses {
  const unwritten = new Map<string, KeyUse>();
  return {
    note(key_id, last_used_at, position) {
      const before = unwritten.get(key_id)?.position ?? null;
      unwritten.set(key_id, { key_id, last_used_at, position: position ?? before });
    },
    unwritten: () => [...unwritten.values()],
    markWritten(uses) {
      for (const use of uses) if (unwritten.get(use.key_id) === use) unwritten.delete(use.key_id);
    },
  };
}
