/** What a check has found: that something is in order, should be looked after, or keeps the appliance from its work. */

export type Status = 'ok' | 'warn' | 'bad';

export interface Finding {
  /** What was looked at, in a word or two. */
  readonly check: string;
  readonly status: Status;
  readonly detail: string;
  /** Null where nothing is to be done. */
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
