/**
 * Everything that clients and operators had received at a moment of the record: it must still hold after a power cut.
 */
import { basename } from 'node:path';
import type { IoEvent } from '../io/record.ts';
import type { Done } from '../scenario/world.ts';
import type { Story } from './story.ts';

export interface Known {
  /** All rows that the follower has received, separated by commas, and its cursor (null: none yet). */
  readonly rows: string;
  readonly cursor: string | null;
  /** Keys that were created or changed, and whether each is revoked. */
  readonly keys: ReadonlyMap<string, boolean>;
  /** Whether a backup has completed. */
  readonly hasBackup: boolean;
  /** Whether the removal of a subscription was requested or has completed. */
  readonly removal: 'not asked for' | 'asked for' | 'done';
  /** The content of dropped files, by name. */
  readonly dropped: ReadonlyMap<string, Buffer>;
}

export const NOTHING_KNOWN: Known = {
  rows: '',
  cursor: null,
  keys: new Map(),
  hasBackup: false,
  removal: 'not asked for',
  dropped: new Map(),
};

const REMOVE = 'subscription remove';
const REQUEST_ID = /^x-request-id: (\S+)/im;

/**
 * The successful commands, by the event of their output that has the result: from then on, the operator relies on it. On
 * a slow machine a command says before it that it waits.
 */
export function commandsByPrint(events: readonly IoEvent[]): Map<IoEvent, Done> {
  const printed = new Map<IoEvent, Done>();
  let prints: IoEvent[] = [];
  for (const event of events) {
    if (event.kind === 'print') prints.push(event);
    if (event.kind !== 'note') continue;
    const { done, keys = [] }: Partial<Done> = JSON.parse(`${event.data}`);
    const result = prints.findLast(({ data }) => keys.every(({ id }) => data.includes(id))) ?? prints.at(-1);
    if (done !== undefined && result !== undefined) printed.set(result, { done, keys });
    prints = [];
  }
  return printed;
}

/** @param printed the commands that the operator gives; none, unless given */
export function learn(
  known: Known,
  event: IoEvent,
  { pages }: Story,
  printed: ReadonlyMap<IoEvent, Done> = new Map(),
): Known {
  switch (event.kind) {
    case 'put':
      return { ...known, dropped: new Map(known.dropped).set(basename(event.path), event.data) };
    case 'answer': {
      const page = pages.get(REQUEST_ID.exec(`${event.data}`)?.[1] ?? '');
      if (page === undefined) return known;
      const rows = known.rows === '' ? page.rows : `${known.rows},${page.rows}`;
      return { ...known, rows, cursor: page.cursor };
    }
    case 'print': {
      const command = printed.get(event);
      if (command === undefined) return known;
      const keys = new Map(known.keys);
      for (const { id, status } of command.keys) keys.set(id, status === 'revoked');
      return {
        ...known,
        keys,
        hasBackup: known.hasBackup || command.done.startsWith('backup'),
        removal: command.done === REMOVE ? 'done' : known.removal,
      };
    }
    case 'note':
      return JSON.parse(`${event.data}`).begun === REMOVE ? { ...known, removal: 'asked for' } : known;
    default:
      return known;
  }
}
