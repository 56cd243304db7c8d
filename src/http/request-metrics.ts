/** Called for every request when metrics are on. */
import type { Limit } from '../limits/limit-names.ts';

export interface RequestMetrics {
  /**
   * A request was answered.
   *
   * @param endpoint the path of its route; {@link NO_ENDPOINT} where it has none
   * @param seconds from its head to the answer
   * @param rows detections in the answer
   */
  answered(endpoint: string, status: number, seconds: number, rows: number): void;
  /** A limit rejected a request or connection. */
  refused(limit: Limit): void;
  /** A request was answered with a problem. @param keyId exists; claimed, perhaps not verified */
  keyRefused(keyId: string, code: string): void;
}

/** In place of a path that has no route. */
export const NO_ENDPOINT = 'none';
