/** Tells what has changed, by name, while anybody wants to know: SQLite is asked whether others have committed since. */
import { statSync } from 'node:fs';
import { now } from '../../clock.ts';
import { createFileReader } from '../../store/file-reader.ts';
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
  const usage = new Watched(() => versionOf(usageReader), USAGE_EVERY_MS);
  const usageReader = createFileReader(folder.usage);
  const detectionsReader = createFileReader(folder.detections);
  const accessReader = createFileReader(folder.access);
  const watched: readonly (readonly [Watched, readonly EventName[]])[] = [
    [new Watched(() => versionOf(detectionsReader)), ['overview', 'windows', 'detections', 'customers']],
    [new Watched(() => versionOf(accessReader)), ['overview', 'customers']],
    [usage, ['overview', 'customers']],
    [new Watched(() => statSync(folder.alerts, { throwIfNoEntry: false })?.mtimeMs), ['overview']],
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

/** Differs when another connection has committed since; whatever cannot be read is told by an alert. */
function versionOf(reader: ReturnType<typeof createFileReader>): unknown {
  try {
    const db = reader.db();
    return db === null ? null : `${db.name} ${db.pragma('data_version', { simple: true })}`;
  } catch {
    reader.close();
    return null;
  }
}
