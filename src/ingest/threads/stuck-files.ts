/**
 * Files that cannot be read or moved now. Each is tried again later and delays no other; while there is any, the alert
 * `file stuck` is open.
 */
import { counted } from '../../counted.ts';
import { type PlainError, plainError, reasonOfFile } from '../../drop/file-errors.ts';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import type { Reporting } from '../reporting.ts';

/** Also after a full disk. */
export const RETRY_MS = paced(10 * SECOND_MS);

/**
 * `dropped`: by path. `taken` (committed and not in its folder yet) and `backfill` (half applied): by number. `archive`:
 * all files without a record, together.
 */
export type StuckKind = 'dropped' | 'taken' | 'backfill' | 'archive';

interface StuckFile {
  readonly name: string;
  readonly reason: string;
  /** Monotonic milliseconds. */
  readonly retryAtMs: number;
}

export class StuckFiles {
  /** By kind and key, in the order in which they became stuck. */
  readonly #files = new Map<string, StuckFile>();
  readonly #setCondition: Reporting['setCondition'];
  readonly #log: Reporting['log'];

  constructor(setCondition: Reporting['setCondition'], log: Reporting['log'] = () => {}) {
    this.#setCondition = setCondition;
    this.#log = log;
  }

  /** Milliseconds until files are tried again; infinite without any. */
  get retryMs(): number {
    return this.#files.size > 0 ? RETRY_MS : Number.POSITIVE_INFINITY;
  }

  isPostponed(kind: StuckKind, key: string | number): boolean {
    return (this.#files.get(`${kind} ${key}`)?.retryAtMs ?? 0) > performance.now();
  }

  /** @returns the error, for the log; null while the file is stuck for the same reason; @throws it if it does not concern one file */
  add(error: unknown, kind: StuckKind, key: string | number, name: string): PlainError | null {
    const reason = reasonOfFile(error);
    const before = this.#files.get(`${kind} ${key}`)?.reason;
    this.#files.set(`${kind} ${key}`, { name, reason, retryAtMs: performance.now() + RETRY_MS });
    this.#report();
    return before === reason ? null : plainError(error);
  }

  /** A file that only a restart with other settings can continue. */
  addUntilRestart(kind: StuckKind, key: string | number, name: string, reason: string): void {
    this.#files.set(`${kind} ${key}`, { name, reason, retryAtMs: Number.POSITIVE_INFINITY });
    this.#report();
  }

  /** Forgets the files of a kind that are not among these. */
  keepOnly(kind: StuckKind, keys: readonly (string | number)[]): void {
    const kept = new Set(keys.map((key) => `${kind} ${key}`));
    for (const key of [...this.#files.keys()])
      if (key.startsWith(`${kind} `) && !kept.has(key)) this.#delete(key);
    this.#report();
  }

  remove(kind: StuckKind, key: string | number): void {
    this.#delete(`${kind} ${key}`);
    this.#report();
  }

  #delete(key: string): void {
    const file = this.#files.get(key);
    if (file === undefined) return;
    this.#files.delete(key);
    this.#log('info', 'a file is no longer stuck', { file: file.name });
  }

  #report(): void {
    const [first] = this.#files.values();
    const others = this.#files.size - 1;
    const and = others > 0 ? ` and ${counted(others, 'more file')}` : '';
    this.#setCondition('file stuck', first === undefined ? null : `${first.name}${and}: ${first.reason}`);
  }
}
