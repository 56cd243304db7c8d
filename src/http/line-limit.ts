/**
 * Log lines that anybody can cause thousands of times a minute, and those of faults: with a damaged database each request
 * is one. Of each name the first ones in a minute are written; the number of the others is logged at its end.
 */
import { addressNetwork } from '../addresses.ts';
import type { Logger } from '../logger.ts';
import { MINUTE_MS } from '../time.ts';

/** Written lines of one address in a minute. fail2ban counts them, so a ban must need no more (security.md). */
const ADDRESS_LINES_MAX = 10;
const LINES_MAX = 500;
/** Causes of faults that are told apart in a minute. */
const CAUSES_MAX = 50;
const CAUSE_CHARACTERS_MAX = 300;

export function createStrangerLog(log: Logger) {
  const { note, close } = createLineLimit(ADDRESS_LINES_MAX, LINES_MAX, (address, counts) => {
    if (address === null) log.info({ counts }, 'further requests from other addresses');
    else log.info({ address, counts }, 'further requests');
  });
  return {
    /** Calls `write`, or counts. @param kind one of a few: the error code, for example */
    note: (address: string, kind: string, write: () => void) => note(addressNetwork(address), kind, write),
    close,
  };
}

/** Each cause is logged once a minute, with its stack. */
export function createFaultLog(log: Logger) {
  const { note, close } = createLineLimit(1, CAUSES_MAX, (cause, counts) =>
    log.error({ cause: cause ?? 'other causes', counts }, 'fault repeated'),
  );
  return {
    note: (kind: 'fault' | 'unavailable', err: unknown, request_id: string) =>
      note(causeOf(err), kind, () => {
        if (kind === 'fault') log.error({ request_id, err }, 'fault');
        else log.error({ request_id, err }, 'unavailable');
      }),
    close,
  };
}

/** The message of the error that caused the others, and its line of code. */
function causeOf(error: unknown): string {
  let root = error;
  for (let depth = 0; depth < 5 && root instanceof Error && root.cause !== undefined; depth += 1)
    root = root.cause;
  if (!(root instanceof Error)) return String(root).slice(0, CAUSE_CHARACTERS_MAX);
  const [, place = ''] = /\n\s+(at .*)/.exec(root.stack ?? '') ?? [];
  return `${root.message.slice(0, CAUSE_CHARACTERS_MAX)} ${place}`;
}

/** @param onMore called at the end of a minute with what was only counted, by kind; name null: of others */
function createLineLimit(
  perName: number,
  linesMax: number,
  onMore: (name: string | null, counts: Readonly<Record<string, number>>) => void,
) {
  const names = new Map<string, { lines: number; readonly more: Map<string, number> }>();
  const others = new Map<string, number>();
  let lines = 0;
  let timer: NodeJS.Timeout | undefined;

  function report(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const [name, { more }] of names) if (more.size > 0) onMore(name, Object.fromEntries(more));
    if (others.size > 0) onMore(null, Object.fromEntries(others));
    names.clear();
    others.clear();
    lines = 0;
  }

  return {
    note(name: string, kind: string, write: () => void): void {
      timer ??= setTimeout(report, MINUTE_MS).unref();
      const known = names.get(name) ?? { lines: 0, more: new Map() };
      if (lines < linesMax && known.lines < perName) {
        lines += 1;
        known.lines += 1;
        names.set(name, known);
        write();
        return;
      }
      const counts = known.lines === perName ? known.more : others;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    },
    /** Logs what is only counted so far. */
    close: report,
  };
}
