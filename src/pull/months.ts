/** Calendar months in UTC, as the dates of a period: never more than 31 days, so one request's width. */

/** `[from, to]`, both included, `YYYY-MM-DD`. */
export interface Period {
  readonly from: string;
  readonly to: string;
}

/**
 * The months from the one of `newest` back to the one of `oldest`, newest first.
 *
 * @param oldest the day on which records begin: no period may begin before it
 */
export function monthsBack(newest: string, oldest: string): Period[] {
  const periods: Period[] = [];
  let to = newest;
  while (to >= oldest) {
    const first = `${to.slice(0, 8)}01`;
    periods.push({ from: first < oldest ? oldest : first, to });
    to = dayBefore(first);
  }
  return periods;
}

function dayBefore(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}
