/**
 * What is tried again later. A file that cannot be read or moved now delays no other; while there is any, the alert
 * `file stuck` is open. On a full disk all of ingest waits: nothing is lost, and clients can read meanwhile.
 */
import { counted } from '../../counted.ts';
import { plainError, reasonOfFile } from '../../drop/file-errors.ts';
import { paced } from '../../pace.ts';
import { isDiskFull } from '../../store/database-errors.ts';
import { SECOND_MS } from '../../time.ts';
import type { WakeableTimer } from '../../wakeable-timer.ts';
import type { Reporting } from '../reporting.ts';

const RETRY_MS = paced(10 * SECOND_MS);

/** `dropped`: by path; `taken` (committed, not in its folder yet), `backfill`: by number; `archive`: files without a record. */
export type StuckKind = 'dropped' | 'taken' | 'backfill' | 'archive';

export type StuckFiles = ReturnType<typeof stuckFiles>;

export function stuckFiles({ log, setCondition }: Reporting) {
  /** By kind and key, in order. Times are monotonic. */
  const files = new Map<string, { readonly name: string; reason: string; retryAtMs: number }>();

  function forget(key: string): void {
    const file = files.get(key);
    if (file !== undefined) log('info', 'a file is no longer stuck', { file: file.name });
    files.delete(key);
  }

  function report(): void {
    const [first] = files.values();
    const others = files.size - 1;
    const and = others > 0 ? ` and ${counted(others, 'more file')}` : '';
    setCondition('file stuck', first === undefined ? null : `${first.name}${and}: ${first.reason}`);
  }

  return {
    /** Milliseconds until files are tried again; infinite without any. */
    retryMs: () => (files.size > 0 ? RETRY_MS : Number.POSITIVE_INFINITY),
    /**
     * Does the work of a file, unless it is to be tried later. An error is logged once for each reason.
     * @returns whether it was tried
     * @throws an error that does not concern one file
     */
    async attempt(kind: StuckKind, key: string | number, name: string, work: () => unknown) {
      const file = `${kind} ${key}`;
      if ((files.get(file)?.retryAtMs ?? 0) > performance.now()) return false;
      try {
        await work();
        forget(file);
      } catch (error) {
        const reason = reasonOfFile(error);
        const fields = { file: name, err: plainError(error) };
        if (files.get(file)?.reason !== reason)
          log('error', 'a file cannot be read or moved: check its permissions; trying again', fields);
        files.set(file, { name, reason, retryAtMs: performance.now() + RETRY_MS });
      }
      report();
      return true;
    },
    keepOnly(kind: StuckKind, keys: readonly (string | number)[]): void {
      const kept = new Set(keys.map((key) => `${kind} ${key}`));
      for (const key of [...files.keys()]) if (key.startsWith(`${kind} `) && !kept.has(key)) forget(key);
      report();
    },
  };
}

/** `stopped`: aborted, with Stopping, when the thread is to end. */
export type FullDisk = Reporting & Readonly<{ timer: WakeableTimer; stopped: AbortSignal }>;

/** Waits until work that failed may be tried again. @throws an error that is not of a full disk */
export async function waitForRoom(error: unknown, disk: FullDisk): Promise<void> {
  if (!isDiskFull(error)) throw error;
  const { timer, stopped, log, setCondition } = disk;
  const err = plainError(error);
  log('error', 'the disk is full: ingest waits for free space', { err });
  setCondition('disk full', err.message);
  stopped.throwIfAborted();
  timer.begin();
  await timer.sleep(RETRY_MS);
  stopped.throwIfAborted();
}
