/** The thread on which a database is copied, so that the one that asked for it can say how far it is. */
import { statSync } from 'node:fs';
import { startWorker } from '../packed.ts';
import { copyBytes, copyDatabase } from '../store/copy.ts';

export interface CopySettings {
  readonly from: string;
  readonly to: string;
}

const LOOK_EVERY_MS = 100;

/** On the thread. @throws what copyDatabase() does, which ends the thread */
export function runCopy({ from, to }: CopySettings): void {
  copyDatabase(from, to);
}

/**
 * @param onProgress told how many bytes of the copy are there
 * @throws what copyDatabase() does
 */
export async function copyOnThread(
  settings: CopySettings,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const total = copyBytes(settings.from);
  const worker = startWorker({ workerData: { role: 'copy', settings } });
  const looking = setInterval(() => {
    const { size = 0 } = statSync(settings.to, { throwIfNoEntry: false }) ?? {};
    onProgress(Math.min(size, total), total);
  }, LOOK_EVERY_MS);
  try {
    await new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    });
  } finally {
    clearInterval(looking);
  }
}
