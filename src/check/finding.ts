/** What a check finds, and how one is run. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'bad';
  readonly detail: string;
  /** Null if there is nothing to do. */
  readonly what_to_do: string | null;
}

export type Outcome = Omit<Finding, 'check'>;
/** None, if there was nothing to check. */
export type Found = Outcome | readonly Outcome[] | undefined;
/** Adds what `run` finds; what it throws is bad. @param todo what to do then. @returns whether nothing is bad */
export type Check = (check: string, run: () => Found | Promise<Found>, todo?: string) => Promise<boolean>;

export const ok = (detail: string): Outcome => ({ status: 'ok', detail, what_to_do: null });
export const warn = (detail: string, what_to_do: string): Outcome => ({ status: 'warn', detail, what_to_do });
export const bad = (detail: string, what_to_do: string): Outcome => ({ status: 'bad', detail, what_to_do });
