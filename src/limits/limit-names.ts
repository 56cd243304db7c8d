/** The limits that refuse requests, by their names in the metrics. */
export const LIMITS = [
  'requests',
  'pages',
  'token_requests',
  'unseen_key_ids',
  'daily_rows',
  'connections',
  'connections_per_address',
] as const;

export type Limit = (typeof LIMITS)[number];
