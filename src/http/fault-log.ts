/**
 * Writes faults to the log, each cause once and then at most once in a while, with how often it came: what keeps
 * failing, as with a damaged database, would otherwise write a stack for every request until the disk is full.
 *
 * Nothing is lost by it: the counts add up, and every request has its own line with its id and status.
 */
import type { Logger } from '../log.ts';
import { formatMs, MINUTE_MS, type Now } from '../time.ts';

export type FaultKind = 'fault' | 'unavailable';

export interface FaultLog {
  /** @param request_id of the request that met it */
  note(kind: FaultKind, error: unknown, request_id: string): void;
  /** Says what was counted and not said yet. */
  close(): void;
}

export interface FaultLogOptions {
  readonly log: Logger;
  readonly now: Now;
  /** How long one line of a cause holds. */
  readonly everyMs?: number;
}

interface Cause {
  readonly kind: FaultKind;
  readonly message: string;
  readonly since: number;
  count: number;
  /** Those that no line has told. */
  untold: number;
  readonly timer: NodeJS.Timeout;
}

/** Causes that are told apart at a time; more of them are counted as one. */
const CAUSES_MAX = 50;
const MESSAGE_CHARACTERS_MAX = 300;

export function createFaultLog({ log, now, everyMs = MINUTE_MS }: FaultLogOptions): FaultLog {
  const causes = new Map<string, Cause>();

  function tell(name: string, cause: Cause): void {
    const { kind, message, since, count, untold } = cause;
    const fields = { what: kind, cause: message, since: formatMs(since), count };
    if (untold > 0) log.error({ ...fields, more: untold }, 'fault repeated');
    else {
      clearInterval(cause.timer);
      causes.delete(name);
      log.info(fields, 'fault no longer occurs');
    }
    cause.untold = 0;
  }

  return {
    note(kind, error, request_id) {
      const root = rootOf(error);
      const own = nameOf(kind, root);
      const isOne = causes.has(own) || causes.size < CAUSES_MAX;
      const name = isOne ? own : kind;
      const known = causes.get(name);
      if (known !== undefined) {
        known.count += 1;
        known.untold += 1;
        return;
      }
      const cause: Cause = {
        kind,
        message: isOne ? messageOf(root) : 'other causes',
        since: now(),
        count: 1,
        untold: 0,
        timer: setInterval(() => tell(name, cause), everyMs).unref(),
      };
      causes.set(name, cause);
      if (kind === 'fault') log.error({ request_id, err: error }, 'fault');
      else log.error({ request_id, err: error }, 'unavailable');
    },
    close() {
      for (const [name, cause] of causes) {
        clearInterval(cause.timer);
        if (cause.untold > 0) tell(name, cause);
      }
      causes.clear();
    },
  };
}

/** What is at the bottom of it: the error that others were thrown for. */
function rootOf(error: unknown): unknown {
  let root = error;
  for (let depth = 0; depth < 5 && root instanceof Error && root.cause !== undefined; depth += 1) {
    root = root.cause;
  }
  return root;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_CHARACTERS_MAX);
}

/** Equal for what came from the same place for the same reason. */
function nameOf(kind: FaultKind, root: unknown): string {
  const stack = root instanceof Error ? (root.stack ?? '') : '';
  return `${kind} ${messageOf(root)}${/\n\s+at .*/.exec(stack)?.[0] ?? ''}`;
}
