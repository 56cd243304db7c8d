/**
 * What differs between the three ways the program runs: from the sources, bundled (dist/main.cjs beside
 * node_modules), and packed into the one executable.
 *
 * In the executable there is no folder to read from: its files are taken from the executable itself.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getAsset, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

declare const WIREWATCH_BUNDLED: boolean | undefined;

const bundled = typeof WIREWATCH_BUNDLED === 'boolean';

/** Is this the executable, on the main thread or in a worker of it? */
export const isPacked: boolean = isSea();

/**
 * Starts src/worker.ts on a thread of its own.
 *
 * @param options as node:worker_threads takes them
 */
export function startWorker(options: WorkerOptions = {}): Worker {
  if (isPacked) {
    // The last line names the script in stack traces, where "[worker eval1]" would tell an operator nothing.
    const script = `${getAsset('worker.cjs', 'utf8')}\n//# sourceURL=worker.cjs`;
    return new Worker(script, { ...options, eval: true });
  }
  if (bundled) return new Worker(fileURLToPath(new URL('worker.cjs', import.meta.url)), options);
  return new Worker(new URL('worker.ts', import.meta.url), options);
}

/** The addon's bytes, without a copy; only in the executable. */
export function packedAddon(): Uint8Array {
  return new Uint8Array(getRawAsset('better_sqlite3.node'));
}

/** Names, versions and licences of what the program contains, or where they are found when run from the sources. */
export function licenses(): string {
  if (isPacked) return getAsset('licenses.txt', 'utf8');
  if (bundled)
    return readFileSync(join(fileURLToPath(new URL('.', import.meta.url)), 'licenses.txt'), 'utf8');
  return 'Run from the sources: each package in node_modules carries its licence.\n';
}
