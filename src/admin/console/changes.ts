/** Reports what has changed, as events, while a console is open. SQLite's `data_version` shows commits of others. */
import { statSync } from 'node:fs';
import { now } from '../../clock.ts';
import { reasonOf } from '../../refused.ts';
import { createFileReader, type FileReader } from '../../store/file-reader.ts';
import type { DataFolder } from '../../store/folder.ts';
import { MINUTE_MS, SECOND_MS } from '../../time.ts';

/**
 * `GET events`: an event stream (text/event-stream). The name of an event says what to read again; its data is `{}`.
 * `end`: the session has ended. At most 20 streams; another one is 503.
 */
export const EVENTS = ['overview', 'windows', 'detections', 'customers', 'jobs', 'end'] as const;
export type EventName = (typeof EVENTS)[number];

const POLL_EVERY_MS = SECOND_MS;
/** Nearly every request changes the file `usage`. */
const USAGE_POLLS = 5;

/** What is compared, the events of a change, and after how many polls. */
type Watched = readonly [read: () => unknown, events: readonly EventName[], polls?: number];

/** @returns a function that begins or ends it */
export function watchChanges(
  folder: DataFolder,
  onChange: (events: EventName[]) => void,
): (on: boolean) => void {
  const detections = createFileReader(folder.detections);
  const access = createFileReader(folder.access);
  const watched: readonly Watched[] = [
    [() => stateOf(detections), ['overview', 'windows', 'detections', 'customers']],
    [() => stateOf(access), ['overview', 'customers']],
    [() => writtenAt(folder.usage), ['overview', 'customers'], USAGE_POLLS],
    // Views that show ages.
    [() => Math.floor(now() / MINUTE_MS), ['overview', 'windows']],
  ];
  const last = new Map<Watched, unknown>();
  let timer: NodeJS.Timeout | undefined;
  let polls = 0;
  const poll = () => {
    polls += 1;
    const due = watched.filter(([, , every = 1]) => polls % every === 0);
    const changed = due.filter((one) => {
      const before = last.get(one);
      last.set(one, one[0]());
      return last.get(one) !== before;
    });
    const events = new Set(changed.flatMap(([, names]) => names));
    if (events.size > 0) onChange([...events]);
  };
  return (on) => {
    clearInterval(timer);
    if (!on) return;
    for (const one of watched) last.set(one, one[0]());
    timer = setInterval(poll, POLL_EVERY_MS);
  };
}

/** Differs when the file was replaced; whoever reads it reports its errors. */
function writtenAt(path: string): unknown {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Differs when another connection has committed. Whoever reads a view reports its errors. */
export function stateOf(from: FileReader): unknown {
  try {
    return from.db()?.pragma('data_version', { simple: true });
  } catch (error) {
    return reasonOf(error);
  }
}
