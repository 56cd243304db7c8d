/** The preference of a client to wait for an answer (RFC 7240, 4.3): `Prefer: wait=N`. */

/** A client that wants longer asks again. */
export const WAIT_SECONDS_MAX = 60;

/**
 * @param header Prefer; given more than once, its values with commas between them
 * @returns whole seconds, 1 to {@link WAIT_SECONDS_MAX}; null for no such preference, or one that is not a number: a
 *   preference that is not understood is ignored (RFC 7240, 2)
 */
export function preferredWaitSeconds(header: string | string[] | undefined): number | null {
  const preferences = (typeof header === 'string' ? header : (header ?? []).join(',')).split(',');
  for (const preference of preferences) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? [];
    // The first one counts, as the RFC says of a preference that is given twice.
    if (seconds !== undefined)
      return Number(seconds) === 0 ? null : Math.min(Number(seconds), WAIT_SECONDS_MAX);
  }
  return null;
}
