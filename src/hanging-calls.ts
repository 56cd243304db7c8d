/**
 * Calls to folders that have not ended in time: a share may hang for ever. Each holds a thread of the few that Node has for
 * files (`main.ts`).
 */
import { MINUTE_MS } from './time.ts';

const AGAIN_MS = 10 * MINUTE_MS;

export class HangingCalls<Result> {
  readonly #calls = new Map<Promise<Result>, { readonly folder: string; readonly sinceMs: number }>();

  /** Keeps a call in mind until it ends. */
  add(folder: string, call: Promise<Result>): void {
    this.#calls.set(call, { folder, sinceMs: performance.now() });
    const end = () => this.#calls.delete(call);
    call.then(end, end);
  }

  /** The newest one of a folder; undefined: none hangs. */
  newest(folder: string): Promise<Result> | undefined {
    return this.#of(folder).at(-1)?.[0];
  }

  /**
   * Whether one more call to a folder may begin, where others hang: once the share was mounted anew, one to the old mount may
   * never end. There are two at most.
   */
  mayTryAgain(folder: string, againMs = AGAIN_MS): boolean {
    const [first, second] = this.#of(folder);
    return first === undefined || (second === undefined && performance.now() - first[1].sinceMs >= againMs);
  }

  #of(folder: string) {
    return [...this.#calls].filter(([, call]) => call.folder === folder);
  }
}
