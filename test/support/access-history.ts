/** An access.db with an account, a subscription and two keys, created for each test. */
import { afterEach, beforeEach } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import type { Doing } from '../../src/auth/actor.ts';
import { type AuditedChange, readTrail } from '../../src/auth/audit.ts';
import { addKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import type { Database } from '../../src/store/database.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { openAccess, USUAL_TERMS } from './access.ts';
import { type Content, contentOfDatabase } from './database-content.ts';
import { testFolder } from './test-folder.ts';

export const KEY = 'abcdefghij23';
export const OTHER_KEY = 'abcdefghij24';
export const HASH = Buffer.alloc(32, 0xab);
export const AT_MS = Date.parse('2026-11-21T10:00:00Z');

export let folder: DataFolder;
export let db: Database;

beforeEach(() => {
  folder = dataFolder(testFolder());
  db = openAccess(folder.root, { create: true });
  addAccount(db, { id: 'acme', name: 'Acme' }, AT_MS);
  addSubscription(db, { id: 7001, account_id: 'acme' }, AT_MS);
  for (const id of [KEY, OTHER_KEY]) addKey(db, keyOf(id), AT_MS);
});
afterEach(() => {
  if (db.open) db.close();
});

export function keyOf(id: string) {
  const subscriptions = [{ id: 7001, content_types: null }];
  return { ...USUAL_TERMS, id, account_id: 'acme', prefix: 'ww', hash: HASH, subscriptions };
}

/** The number of the newest entry of the audit trail. */
export const lastEntry = (): number => audited().at(-1)?.entry ?? 0;

/** Reopens access.db, as a start does. @returns also what was wrong with it where the spare copy took its place */
export function reopened(): { content: Content; recovered: string[] } {
  if (db.open) db.close();
  const recovered: string[] = [];
  db = openAccess(folder.root, { onRecovered: (reason) => recovered.push(reason) });
  return { content: contentOfDatabase(db), recovered };
}

export function reopenAs(operation: Doing): void {
  if (db.open) db.close();
  db = openAccess(folder.root, { operation });
}

export const audited = (): readonly AuditedChange[] => readTrail(db).changes;
