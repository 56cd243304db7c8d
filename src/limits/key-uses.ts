/** When each key was last used, and how far it has read the change stream. In memory; usage-keeper.ts has it written. */

/** One use as stored. */
export interface KeyUse {
  readonly key_id: string;
  /** Epoch milliseconds. */
  readonly last_used_at: number;
  /** Of the last change stream cursor given to it; null: none since the last write. */
  readonly position: number | null;
}

export interface KeyUses {
  /** Call for each response to this verified key, or to a token of it. @param position see {@link KeyUse} */
  note(keyId: string, nowMs: number, position?: number): void;
  /** The uses that are not written yet. */
  unwritten(): KeyUse[];
  /** Call when these were written; a key that was used since stays unwritten. */
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
