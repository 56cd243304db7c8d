/** Tells what has changed, by name, while anybody wants to know: SQLite is asked whether others have committed since. */
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

const LOOK_EVERY_MS = SECOND_MS;
/** Requests change what is known of usage every second: so often is enough to look at it. */
const USAGE_EVERY_MS = 5 * SECOND_MS;

export function watchChanges(folder: DataFolder, tell: (events: EventName[]) => void): Changes {
  const detections = createFileReader(folder.detections);
  const access = createFileReader(folder.access);
  const usage = createFileReader(folder.usage);
  const watched: readonly (readonly [Watched, readonly EventName[]])[] = [
    [new Watched(() => stateOf(detections)), ['overview', 'windows', 'detections', 'customers']],
    [new Watched(() => stateOf(access)), ['overview', 'customers']],
    [new Watched(() => stateOf(usage), USAGE_EVERY_MS), ['overview', 'customers']],
    [new Watched(() => stateOf(folder.alerts)), ['overview']],
    // What is shown with its age.
    [new Watched(() => Math.floor(now() / MINUTE_MS)), ['overview', 'windows']],
  ];
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    const events = watched.flatMap(([one, names]) => (one.hasChanged() ? names : []));
    if (events.length > 0) tell([...new Set(events)]);
  };
  return {
    watch(on) {
      clearInterval(timer);
      if (!on) return;
      for (const [one] of watched) one.hasChanged();
      timer = setInterval(look, LOOK_EVERY_MS);
    },
  };
}

/** Differs when the file was written, or another connection has committed. What cannot be read is told by who reads it. */
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
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => unknown, everyMs = 0) {
    this.#read = read;
    this.#everyMs = everyMs;
  }

  hasChanged(): boolean {
    if (performance.now() - this.#toldAtMs < this.#everyMs) return false;
    const value = this.#read();
    if (value === this.#last) return false;
    this.#last = value;
    this.#toldAtMs = performance.now();
    return true;
  }
}
