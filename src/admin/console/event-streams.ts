/** The event streams of open consoles: each event names what to read again. */
import type { ServerResponse } from 'node:http';
import { paced } from '../../pace.ts';
import { SECOND_MS } from '../../time.ts';
import type { EventName } from './changes.ts';

export type EventStreams = ReturnType<typeof createEventStreams>;

export const STREAMS_MAX = 20;
/** Keeps proxies and browsers from closing an idle stream. Each time, sessions that have ended are found. */
const BEAT_EVERY_MS = paced(5 * SECOND_MS);
/** A console with more unread bytes is disconnected. */
const UNREAD_BYTES_MAX = 64 * 1024;
/** Between two consoles: if all read again at the same moment, requests of the API would wait behind them. */
export const SPREAD_MS = 20;

/** @param onUsed called with whether any stream is open */
export function createEventStreams(onUsed: (isUsed: boolean) => void) {
  const open = new Map<ServerResponse, () => boolean>();
  let beating: NodeJS.Timeout | undefined;

  function write(response: ServerResponse, text: string): void {
    if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
    else response.write(text);
  }

  function beat(): void {
    for (const [response, isOpen] of open) {
      if (isOpen()) write(response, ':\n\n');
      else response.end(eventText('end'));
    }
  }

  return {
    /** @param isOpen whether its session is open; @returns false if there are too many streams */
    add(response: ServerResponse, isOpen: () => boolean): boolean {
      if (open.size >= STREAMS_MAX) return false;
      open.set(response, isOpen);
      if (open.size === 1) {
        onUsed(true);
        beating = setInterval(beat, BEAT_EVERY_MS);
      }
      response.once('close', () => {
        open.delete(response);
        if (open.size > 0) return;
        clearInterval(beating);
        onUsed(false);
      });
      return true;
    },
    send(events: readonly EventName[]) {
      const text = events.map(eventText).join('');
      [...open.keys()].forEach((response, index) => {
        if (index === 0) write(response, text);
        else setTimeout(() => open.has(response) && write(response, text), index * SPREAD_MS).unref();
      });
    },
    close() {
      clearInterval(beating);
      for (const response of open.keys()) response.destroy();
    },
  };
}

function eventText(name: EventName): string {
  return `event: ${name}\ndata: {}\n\n`;
}
