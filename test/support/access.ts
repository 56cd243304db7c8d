/** Opens access.db for tests, and makes keys in it. */
import { createKey, hashKey } from '../../src/auth/key-form.ts';
import { addKey, type KeyTerms, type NewKey, type NewKeyTerms } from '../../src/auth/keys.ts';
import { type OpenAccessOptions, openAccess as open } from '../../src/auth/open-access.ts';
import type { Database } from '../../src/store/database.ts';

export const openAccess = (root: string, options: Partial<OpenAccessOptions> = {}): Database =>
  open(root, { operation: { kind: 'test' }, ...options });

export type TestTerms = Partial<KeyTerms & Pick<NewKey, 'account_id'>>;

/** Without any restriction but its subscriptions. */
export const USUAL_TERMS: NewKeyTerms = { name: 'Dashboard', scopes: ['detections:read'], subscriptions: [] };

/** For a key that reads both subscriptions that most tests have. */
export const BOTH = [7001, 7002].map((id) => ({ id, content_types: null }));

export function addTestKey(db: Database, nowMs: number, terms: TestTerms): { id: string; key: string } {
  const made = createKey('ww');
  const proof = { id: made.id, prefix: 'ww', hash: hashKey(made.key) };
  addKey(db, { ...USUAL_TERMS, account_id: 'agency', ...terms, ...proof }, nowMs);
  return made;
}
