/**
 * Logs faults: each cause once with its stack, then at most once a minute with a count. What keeps failing, as with a
 * damaged database, would otherwise write a stack for every request until the disk is full.
 */
import type { Logger } from '../logger.ts';
import { formatMs, MINUTE_MS, type Now } from '../time.ts';

interface FaultLogOptions {
  readonly log: Logger;
  readonly now: Now;
  /** Between two lines of a cause. */
  readonly everyMs?: number;
}

interface Cause {
  readonly kind: string;
  readonly message: string;
  readonly since: number;
  count: number;
  /** Not logged yet. */
  unlogged: number;
  readonly timer: NodeJS.Timeout;
}

/** Causes at a time; more of them count as one. */
const CAUSES_MAX = 50;
const MESSAGE_CHARACTERS_MAX = 300;

export type FaultLog = ReturnType<typeof createFaultLog>;

export function createFaultLog({ log, now, everyMs = MINUTE_MS }: FaultLogOptions) {
  const causes = new Map<string, Cause>();

  function report(name: string, cause: Cause): void {
    const { kind, message, since, count, unlogged } = cause;
    const fields = { what: kind, cause: message, since: formatMs(since), count };
    if (unlogged > 0) log.error({ ...fields, more: unlogged }, 'fault repeated');
    else {
      clearInterval(cause.timer);
      causes.delete(name);
      log.info(fields, 'fault no longer occurs');
    }
    cause.unlogged = 0;
  }

  return {
    /** @param request_id of the request that failed */
    note(kind: 'fault' | 'unavailable', error: unknown, request_id: string): void {
      const root = rootOf(error);
      const own = nameOf(kind, root);
      const isOne = causes.has(own) || causes.size < CAUSES_MAX;
      const name = isOne ? own : kind;
      const known = causes.get(name);
      if (known !== undefined) {
        known.count += 1;
        known.unlogged += 1;
        return;
      }
      const cause: Cause = {
        kind,
        message: isOne ? messageOf(root) : 'other causes',
        since: now(),
        count: 1,
        unlogged: 0,
        timer: setInterval(() => report(name, cause), everyMs).unref(),
      };
      causes.set(name, cause);
      if (kind === 'fault') log.error({ request_id, err: error }, 'fault');
      else log.error({ request_id, err: error }, 'unavailable');
    },
    /** Logs the counts that are not logged yet. */
    close(): void {
      for (const [name, cause] of causes) {
        clearInterval(cause.timer);
        if (cause.unlogged > 0) report(name, cause);
      }
      causes.clear();
    },
  };
}

/** The error that caused the others. */
function rootOf(error: unknown): unknown {
  let root = error;
  for (let depth = 0; depth < 5 && root instanceof Error && root.cause !== undefined; depth += 1)
    root = root.cause;
  return root;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_CHARACTERS_MAX);
}

/** The same for errors with one message from one line of code. */
function nameOf(kind: string, root: unknown): string {
  const stack = root instanceof Error ? (root.stack ?? '') : '';
  return `${kind} ${messageOf(root)}${/\n\s+at .*/.exec(stack)?.[0] ?? ''}`;
}
