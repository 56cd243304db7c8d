/** The result of one check: it is OK, needs attention, or keeps the appliance from working. */

export type Status = 'ok' | 'warn' | 'bad';

export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly status: Status;
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

export function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail, what_to_do: null };
}

export function warn(check: string, detail: string, what_to_do: string): Finding {
  return { check, status: 'warn', detail, what_to_do };
}

export function bad(check: string, detail: string, what_to_do: string): Finding {
  return { check, status: 'bad', detail, what_to_do };
}
