/** Follows a log to the mark of a database, part by part, as often as the database has gone on. */
import { grouped } from '../counted.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import type { LogMark } from '../store/log-mark.ts';
import type { Commit } from './format.ts';
import { LogDamage } from './log-error.ts';
import { entriesAfter, type LocatedPart } from './log-reader.ts';

export class LogFollower {
  readonly #folder: string;
  readonly #onPart: (located: LocatedPart) => Promise<void>;
  readonly #parts: Generator<LocatedPart>;
  #last: Commit | null = null;

  /** @param onPart told of each part of each entry, in order */
  constructor(folder: string, onPart: (located: LocatedPart) => Promise<void>) {
    this.#folder = folder;
    this.#onPart = onPart;
    this.#parts = entriesAfter(folder, 'detections', null);
  }

  /**
   * Reads on to the entry that a database has applied last; no further, since what follows may still be written.
   *
   * @param mark as read from the database; null: it has applied none
   * @throws LogDamage where the log is damaged before the mark, or does not have it; DatabaseDamage where the mark went back
   */
  async to(mark: LogMark | null): Promise<void> {
    const entry = mark?.entry ?? 0;
    while ((this.#last?.entry ?? 0) < entry) {
      const { value } = this.#parts.next();
      if (value === undefined)
        throw new LogDamage(
          `${this.#folder} ends with entry ${grouped(this.#last?.entry ?? 0)}, but detections.db has applied entry ${grouped(entry)}`,
        );
      await this.#onPart(value);
      if (value.part.kind === 'commit') this.#last = value.part.commit;
    }
    if (this.#last?.entry !== mark?.entry)
      throw new DatabaseDamage(`log_mark went back from entry ${this.#last?.entry} to entry ${entry}`);
    if (this.#last?.id !== mark?.id)
      throw new DatabaseDamage(`log_mark names entry ${entry} with an id that the log does not contain`);
  }

  /** The last entry that was read; null: none. */
  get entry(): number | null {
    return this.#last?.entry ?? null;
  }

  close(): void {
    this.#parts.return(undefined);
  }
}
