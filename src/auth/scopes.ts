/** The scopes of credentials. */

export const SCOPES = ['detections:read', 'reports:read', 'exports:create'] as const;
export type Scope = (typeof SCOPES)[number];
