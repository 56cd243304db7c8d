/** The limits that keep requests out, by the names that metrics have for them. */
export const LIMITS = [
  'requests',
  'token_requests',
  'unseen_key_ids',
  'daily_rows',
  'connections',
  'connections_per_address',
] as const;

export type Limit = (typeof LIMITS)[number];
