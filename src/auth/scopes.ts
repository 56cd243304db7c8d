/** What a credential may be allowed to do (contract: Authentication, 4). */

export const SCOPES = ['detections:read', 'reports:read', 'exports:create'] as const;
export type Scope = (typeof SCOPES)[number];

export function isScope(value: string): value is Scope {
  return value === 'detections:read' || value === 'reports:read' || value === 'exports:create';
}
