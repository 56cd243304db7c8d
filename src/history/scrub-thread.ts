/**
 * The thread of a scrub in a running appliance. It works a tenth of the time at most, in steps of milliseconds, and stops
 * at once on request.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { paced } from '../pace.ts';
import { dataFolder } from '../store/folder.ts';
import { type ScrubResult, scrub } from './scrub.ts';

export interface ScrubSettings {
  readonly data: string;
}

/** Asks it to end. */
export type ToScrub = 'stop';
export type FromScrub = ScrubResult;

/** How long it works before it rests, and how many times as long it rests. */
const WORK_MS = 20;
const REST_FACTOR = 9;

class Stopped extends Error {}

export async function runScrub(port: MessagePort, { data }: ScrubSettings): Promise<void> {
  const stopping = new AbortController();
  port.once('message', () => stopping.abort());
  let since = performance.now();
  const between = async () => {
    if (stopping.signal.aborted) throw new Stopped();
    const workedMs = performance.now() - since;
    if (workedMs < WORK_MS) return;
    await sleep(paced(workedMs * REST_FACTOR), undefined, { signal: stopping.signal }).catch(() => {
      throw new Stopped();
    });
    since = performance.now();
  };
  try {
    const result = await scrub({ folder: dataFolder(data), between, onProgress: () => {} });
    port.postMessage(result satisfies FromScrub);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  } finally {
    port.close();
  }
}
