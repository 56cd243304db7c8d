/** The result of one check: it is OK, needs attention, or keeps the appliance from working. */
import { reasonOf } from '../refused.ts';

export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'bad';
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

export type Outcome = Omit<Finding, 'check'>;

export function ok(detail: string): Outcome {
  return { status: 'ok', detail, what_to_do: null };
}

export function warn(detail: string, what_to_do: string): Outcome {
  return { status: 'warn', detail, what_to_do };
}

export function bad(detail: string, what_to_do: string): Outcome {
  return { status: 'bad', detail, what_to_do };
}

/** What `work` finds; what it throws is bad. @param path that is checked, for the reason */
export function tried(path: string, todo: string, work: () => Outcome): Outcome {
  try {
    return work();
  } catch (error) {
    return bad(`${path}: ${reasonOf(error, path)}`, todo);
  }
}
