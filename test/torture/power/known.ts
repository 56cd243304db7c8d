/** What clients and operators had been told at a moment of the story: after a power cut, it must still be so. */
import { basename } from 'node:path';
import type { IoEvent } from '../io/record.ts';
import type { Done, Story } from './story.ts';

export interface Known {
  /** Every row that the follower got, with commas between them; and the cursor that it holds, null: none yet. */
  readonly rows: string;
  readonly cursor: string | null;
  /** Keys that were made or changed, and whether each is revoked. */
  readonly keys: ReadonlyMap<string, boolean>;
  /** Whether a backup was said to be complete. */
  readonly hasBackup: boolean;
  /** Whether a subscription was said to be removed, or a command is about to. */
  readonly removal: 'not asked for' | 'asked for' | 'done';
  /** What was dropped, by name. */
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

/** For each command, the first line that it printed: that is when it was believed. */
export function commandsByPrint(events: readonly IoEvent[]): Map<IoEvent, Done> {
  const printed = new Map<IoEvent, Done>();
  let first: IoEvent | null = null;
  for (const event of events) {
    if (event.kind === 'print') first ??= event;
    if (event.kind !== 'note') continue;
    const noted: Partial<Done> = JSON.parse(event.text);
    if (noted.done !== undefined && first !== null)
      printed.set(first, { done: noted.done, keys: noted.keys ?? [] });
    first = null;
  }
  return printed;
}

export function learn(known: Known, event: IoEvent, { pages }: Story, printed: Map<IoEvent, Done>): Known {
  switch (event.kind) {
    case 'put':
      return { ...known, dropped: new Map(known.dropped).set(basename(event.path), event.content) };
    case 'answer': {
      const page = pages.get(REQUEST_ID.exec(event.text)?.[1] ?? '');
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
      return JSON.parse(event.text).begun === REMOVE ? { ...known, removal: 'asked for' } : known;
    default:
      return known;
  }
}
