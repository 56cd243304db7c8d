/** Reports what has changed, as events, while a console is open. SQLite's `data_version` shows commits of others. */
import { statSync } from 'node:fs';
import { now } from '../../clock.ts';
import { reasonOf } from '../../refused.ts';
import { createFileReader, type FileReader } from '../../store/file-reader.ts';
import type { DataFolder } from '../../store/folder.ts';
import { MINUTE_MS, SECOND_MS } from '../../time.ts';
import type { EventName } from './api.ts';

export interface Changes {
  watch(on: boolean): void;
}

const POLL_EVERY_MS = SECOND_MS;
/** Every request changes usage.db; views of usage are updated this often. */
const USAGE_EVERY_MS = 5 * SECOND_MS;

export function watchChanges(folder: DataFolder, onChange: (events: EventName[]) => void): Changes {
  const detections = createFileReader(folder.detections);
  const access = createFileReader(folder.access);
  const usage = createFileReader(folder.usage);
  const watched: readonly (readonly [Watched, readonly EventName[]])[] = [
    [new Watched(() => stateOf(detections)), ['overview', 'windows', 'detections', 'customers']],
    [new Watched(() => stateOf(access)), ['overview', 'customers']],
    [new Watched(() => stateOf(usage), USAGE_EVERY_MS), ['overview', 'customers']],
    [new Watched(() => stateOf(folder.alerts)), ['overview']],
    // Views that show ages.
    [new Watched(() => Math.floor(now() / MINUTE_MS)), ['overview', 'windows']],
  ];
  let timer: NodeJS.Timeout | undefined;
  const poll = () => {
    const events = watched.flatMap(([one, names]) => (one.hasChanged() ? names : []));
    if (events.length > 0) onChange([...new Set(events)]);
  };
  return {
    watch(on) {
      clearInterval(timer);
      if (!on) return;
      for (const [one] of watched) one.hasChanged();
      timer = setInterval(poll, POLL_EVERY_MS);
    },
  };
}

/** Differs when the file was written, or another connection has committed. Whoever reads a view reports its errors. */
export function stateOf(from: string | FileReader): unknown {
  try {
    if (typeof from === 'string') return statSync(from, { throwIfNoEntry: false })?.mtimeMs;
    return from.db()?.pragma('data_version', { simple: true });
  } catch (error) {
    return reasonOf(error);
  }
}

class Watched {
  readonly #read: () => unknown;
  readonly #everyMs: number;
  #last: unknown;
  #changedAtMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => unknown, everyMs = 0) {
    this.#read = read;
    this.#everyMs = everyMs;
  }

  hasChanged(): boolean {
    if (performance.now() - this.#changedAtMs < this.#everyMs) return false;
    const value = this.#read();
    if (value === this.#last) return false;
    this.#last = value;
    this.#changedAtMs = performance.now();
    return true;
  }
}
