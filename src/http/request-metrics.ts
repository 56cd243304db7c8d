/** What somebody who counts is told of the requests; nobody, unless metrics are on. */
import type { Limit } from '../limits/limit.ts';

export interface RequestMetrics {
  /**
   * A request was answered.
   *
   * @param endpoint the path of its route, as in the contract; {@link NO_ENDPOINT} where it has none
   * @param seconds from its head to the answer's being handed over
   * @param rows detections in the answer
   */
  answered(endpoint: string, status: number, seconds: number, rows: number): void;
  /** A limit kept something out. */
  refused(limit: Limit): void;
  /** A request was answered with a problem. @param keyId as it named it; nothing need be proven */
  keyRefused(keyId: string, code: string): void;
}

/** In place of a path that anybody can make up. */
export const NO_ENDPOINT = 'none';
