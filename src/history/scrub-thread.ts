/** The thread of a scrub beside a running appliance: it works at most a tenth of the time, in steps of milliseconds. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { paced } from '../pace.ts';
import { dataFolder } from '../store/folder.ts';
import { serveCalls } from '../thread-call.ts';
import { type ScrubResult, scrub } from './scrub.ts';

export interface ScrubSettings {
  readonly data: string;
}

export interface ScrubCalls {
  /** Null: it was stopped first. */
  scrub(): ScrubResult | null;
  stop(): void;
}

/** It works for this long, then rests nine times as long. */
const WORK_MS = 20;
const REST_FACTOR = 9;

class Stopped extends Error {}

export function runScrub(port: MessagePort, { data }: ScrubSettings): void {
  const stopping = new AbortController();
  serveCalls<ScrubCalls>(port, {
    stop: () => stopping.abort(),
    async scrub() {
      const between = restBetween(stopping.signal);
      try {
        return await scrub({ folder: dataFolder(data), between, onProgress: () => {} });
      } catch (error) {
        if (error instanceof Stopped) return null;
        throw error;
      }
    },
  });
}

function restBetween(signal: AbortSignal): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (signal.aborted) throw new Stopped();
    const workedMs = performance.now() - since;
    if (workedMs < WORK_MS) return;
    await sleep(paced(workedMs * REST_FACTOR), undefined, { signal }).catch(() => {
      throw new Stopped();
    });
    since = performance.now();
  };
}
