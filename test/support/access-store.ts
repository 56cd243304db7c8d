/** A store with the account acme and its keys, as requests read it. */
import { join } from 'node:path';
import { after } from 'node:test';
import { createAccessReader } from '../../src/auth/access-reader.ts';
import { addAccount } from '../../src/auth/accounts.ts';
import type { KeyTerms } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { addTestKey, openAccess } from './access.ts';
import { testFolder } from './test-folder.ts';

export const NOW_MS = Date.parse('2026-11-21T10:00:00Z');

export const HERE = '192.0.2.7';

/** The data folder. */
export const root = testFolder();
export const db = openAccess(root, { create: true });
addAccount(db, { id: 'acme', name: 'Acme News', daily_rows: 5000 }, NOW_MS);
addAccount(db, { id: 'other', name: 'Other' }, NOW_MS);
const zone = { account_id: 'acme', time_zone: 'Europe/Berlin' };
addSubscription(db, { id: 7002, ...zone }, NOW_MS);
addSubscription(db, { id: 7001, name: 'Wire', ...zone }, NOW_MS);
export const store = createAccessReader(join(root, 'access.db'));

after(() => {
  store.close();
  db.close();
});

export const makeKey = (terms: Partial<KeyTerms> = {}, account_id = 'acme'): { id: string; key: string } =>
  addTestKey(db, NOW_MS, { ...terms, account_id });
