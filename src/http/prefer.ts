/** The header `Prefer: wait=N` (RFC 7240, 4.3): how long a client prefers to wait. */

export const WAIT_SECONDS_MAX = 60;

/**
 * @param header repeated headers joined with commas, or as a list
 * @returns whole seconds, 1 to {@link WAIT_SECONDS_MAX}; null without the preference, or for one that is not a number,
 *   which is ignored (RFC 7240, 2)
 */
export function preferredWaitSeconds(header: string | string[] | undefined): number | null {
  const preferences = (typeof header === 'string' ? header : (header ?? []).join(',')).split(',');
  for (const preference of preferences) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? [];
    // Of a repeated preference the first counts (RFC 7240, 2).
    if (seconds !== undefined)
      return Number(seconds) === 0 ? null : Math.min(Number(seconds), WAIT_SECONDS_MAX);
  }
  return null;
}
