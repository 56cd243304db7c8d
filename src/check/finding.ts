/** The result of one check: it is OK, needs attention, or keeps the appliance from working. */

export type Status = 'ok' | 'warn' | 'bad';

export interface Outcome {
  readonly status: Status;
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

export interface Finding extends Outcome {
  /** What was checked, in a word or two. */
  readonly check: string;
}

export function finding(check: string, outcome: Outcome): Finding {
  return { check, ...outcome };
}

export function ok(detail: string): Outcome {
  return { status: 'ok', detail, what_to_do: null };
}

export function warn(detail: string, what_to_do: string): Outcome {
  return { status: 'warn', detail, what_to_do };
}

export function bad(detail: string, what_to_do: string): Outcome {
  return { status: 'bad', detail, what_to_do };
}
