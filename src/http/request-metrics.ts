/** What is counted of requests when metrics are on. */

/** The limits that refuse requests, by their names in the metrics. */
export const LIMITS = [
  'requests',
  'token_requests',
  'unseen_key_ids',
  'daily_rows',
  'connections',
  'connections_per_address',
] as const;
export type Limit = (typeof LIMITS)[number];

export interface RequestMetrics {
  /** @param seconds from its head to the answer; @param rows detections in the answer */
  answered(endpoint: string, status: number, seconds: number, rows: number): void;
  refused(limit: Limit): void;
  /** A request was answered with a problem. @param keyId exists; claimed, perhaps not verified */
  keyRefused(keyId: string, code: string): void;
}

export const NO_ENDPOINT = 'none';
