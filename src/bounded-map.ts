/**
 * A map that holds at most so many entries: the one that was set longest ago goes first. To set a key again counts as the
 * newest. Dropping takes constant time, however many entries there are.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #entriesMax: number;
  /** Kept, since a new iterator would pass over every entry that was deleted before the first one left. */
  readonly #oldest = this.keys();

  /** @param entriesMax at least 1 */
  constructor(entriesMax: number) {
    super();
    this.#entriesMax = entriesMax;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#entriesMax) {
      const oldest = this.#oldest.next();
      if (!oldest.done) this.delete(oldest.value);
    }
    return this;
  }
}
