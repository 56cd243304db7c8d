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

interface Answered {
  readonly endpoint: string;
  readonly status: number;
  /** From its head to the answer, without waiting for a change. */
  readonly seconds: number;
  /** Detections in the answer. */
  readonly rows: number;
  /** Null: no key was verified. */
  readonly key_id: string | null;
  /** Of the change stream cursor in the answer. */
  readonly position?: number | undefined;
}

export interface RequestMetrics {
  answered(answer: Answered): void;
  refused(limit: Limit): void;
  /** A request was answered with a problem. @param keyId exists; claimed, perhaps not verified */
  keyRefused(keyId: string, code: string): void;
}

export const NO_ENDPOINT = 'none';
