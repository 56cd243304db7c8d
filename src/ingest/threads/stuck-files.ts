/**
 * Files that cannot be read or moved now. Each is tried again later and delays no other; while there is any, the alert
 * `file stuck` is open.
 */
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import { type PlainError, plainError, reasonOfFile } from '../file-errors.ts';
import type { SetCondition } from './ingest-messages.ts';

/** Also after a full disk. */
export const RETRY_MS = paced(10 * SECOND_MS);

/**
 * `dropped`: by path. `taken` (committed and not in its folder yet) and `backfill` (half applied): by number. `archive`:
 * all files without a record, together.
 */
export type StuckKind = 'dropped' | 'taken' | 'backfill' | 'archive';

export class StuckFiles {
  /** By kind and key, monotonic milliseconds. */
  readonly #retryAtMs = new Map<string, number>();
  readonly #setCondition: SetCondition;

  constructor(setCondition: SetCondition) {
    this.#setCondition = setCondition;
  }

  /** Milliseconds until files are tried again; infinite without any. */
  get retryMs(): number {
    return this.#retryAtMs.size > 0 ? RETRY_MS : Number.POSITIVE_INFINITY;
  }

  isPostponed(kind: StuckKind, key: string | number): boolean {
    return (this.#retryAtMs.get(`${kind} ${key}`) ?? 0) > performance.now();
  }

  /** @returns the error, for the log; @throws it if it does not concern one file */
  add(error: unknown, kind: StuckKind, key: string | number, name: string): PlainError {
    this.#postpone(`${kind} ${key}`, `${name}: ${reasonOfFile(error)}`, performance.now() + RETRY_MS);
    return plainError(error);
  }

  /** A file that only a restart with other settings can continue. */
  addUntilRestart(kind: StuckKind, key: string | number, name: string, reason: string): void {
    this.#postpone(`${kind} ${key}`, `${name}: ${reason}`, Number.POSITIVE_INFINITY);
  }

  /** Forgets the files of a kind that are not among these. */
  keepOnly(kind: StuckKind, keys: readonly (string | number)[]): void {
    const kept = new Set(keys.map((key) => `${kind} ${key}`));
    for (const key of this.#retryAtMs.keys())
      if (key.startsWith(`${kind} `) && !kept.has(key)) this.#retryAtMs.delete(key);
    if (this.#retryAtMs.size === 0) this.#setCondition('file stuck', null);
  }

  remove(kind: StuckKind, key: string | number): void {
    this.#retryAtMs.delete(`${kind} ${key}`);
    if (this.#retryAtMs.size === 0) this.#setCondition('file stuck', null);
  }

  #postpone(file: string, detail: string, untilMs: number): void {
    this.#retryAtMs.set(file, untilMs);
    this.#setCondition('file stuck', detail);
  }
}
