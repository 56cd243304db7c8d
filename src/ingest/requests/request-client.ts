/** Waits for a request to the ingest thread: the command's end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../store/database.ts';
import type { DataFolder } from '../../store/folder.ts';
import { isLocked, takeLock } from '../../store/locks.ts';
import { startIngest } from '../threads/ingest-client.ts';
import type { IngestEvent, IngestSettings } from '../threads/ingest-messages.ts';
import { type RequestOutcome, requestState } from './requests.ts';

const CHECK_EVERY_MS = 100;

export interface RequestWatch {
  /** @param text each change, in words */
  readonly onProgress: (text: string) => void;
  readonly onLog: (line: Extract<IngestEvent, { kind: 'log' }>) => void;
}

/**
 * Waits until a request is served: by the appliance that runs on the data folder, or else by a thread of this process. An
 * appliance that starts meanwhile takes over.
 */
export async function untilServed(
  id: number,
  { access, folder }: { access: Database; folder: DataFolder },
  settings: IngestSettings,
  { onProgress, onLog }: RequestWatch,
): Promise<RequestOutcome> {
  let shown: string | null = null;
  for (;;) {
    const state = requestState(access, id);
    if (state.outcome !== null) return state.outcome;
    if (state.progress !== null && state.progress !== shown) onProgress(state.progress);
    shown = state.progress;
    // An appliance that is about to start would find the lock taken again.
    const releaseLock = isLocked(folder.serveLock) ? null : takeLock(folder.lock);
    if (releaseLock === null) {
      await sleep(CHECK_EVERY_MS);
      continue;
    }
    try {
      const ingest = startIngest({ ...settings, mode: 'requests' }, (message) => {
        if (message.kind === 'log') onLog(message);
        if (message.kind === 'progress') onProgress(message.file);
        if (message.kind === 'recovering')
          onProgress(`bringing detections.db up to date from the log: ${message.reason}`);
      });
      await ingest.ready;
      const fault = await ingest.ended;
      if (fault !== null) throw fault;
    } finally {
      releaseLock();
    }
  }
}
