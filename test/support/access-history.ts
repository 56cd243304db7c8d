/** An access.db with an account, a subscription and two keys, created for each test. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { addKey } from '../../src/auth/keys.ts';
import { addSubscription } from '../../src/auth/subscriptions.ts';
import { type AuditedChange, readTrail } from '../../src/auth/audit.ts';
import type { Operation } from '../../src/history/format.ts';
import { findTail } from '../../src/history/log-reader.ts';
import type { Recovered } from '../../src/auth/open-access.ts';
import { ACCESS_TABLES } from '../../src/store/access-schema.ts';
import type { Database } from '../../src/store/database.ts';
import { type DataFolder, dataFolder } from '../../src/store/folder.ts';
import { openAccess } from './access.ts';

export const KEY = 'abcdefghij23';
export const OTHER_KEY = 'abcdefghij24';
export const HASH = Buffer.alloc(32, 0xab);
export const AT_MS = Date.parse('2026-11-21T10:00:00Z');

export let folder: DataFolder;
export let db: Database;

beforeEach(() => {
  folder = dataFolder(mkdtempSync(join(tmpdir(), 'wirewatch-test-')));
  db = openAccess(folder.root, { create: true });
  addAccount(db, { id: 'acme', name: 'Acme', daily_rows: null }, AT_MS);
  const terms = { name: null, time_zone: 'UTC', content_types: ['text', 'image'] as const };
  addSubscription(db, { id: 7001, account_id: 'acme', ...terms }, AT_MS);
  for (const id of [KEY, OTHER_KEY]) addKey(db, keyOf(id), AT_MS);
});
afterEach(() => {
  if (db.open) db.close();
  rmSync(folder.root, { recursive: true });
});

export function keyOf(id: string) {
  return {
    id,
    account_id: 'acme',
    prefix: 'ww',
    hash: HASH,
    name: 'Dashboard',
    scopes: ['detections:read' as const],
    subscriptions: [{ id: 7001, content_types: null }],
    expires_at: null,
    allow_addresses: [],
    daily_rows: null,
  };
}

/** All rows of access.db, by table. */
export function contentOf(from: Database): Record<string, unknown[]> {
  const rows = (table: string) => from.prepare(`SELECT * FROM ${table} ORDER BY 1`).all();
  return Object.fromEntries(ACCESS_TABLES.map((table) => [table, rows(table)]));
}

export const lastEntry = () => findTail(folder.accessLog, 'access').last?.entry ?? 0;
export const segment = () => join(folder.accessLog, readdirSync(folder.accessLog)[0] ?? '');

/** Reopens access.db, as a start does. */
export function reopened(compare = false): { content: Record<string, unknown[]>; recovered: Recovered[] } {
  if (db.open) db.close();
  const recovered: Recovered[] = [];
  db = openAccess(folder.root, { compare, onRecovered: (what) => recovered.push(what) });
  return { content: contentOf(db), recovered };
}

/** Reopens access.db as another actor. */
export function reopenAs(operation: Operation): void {
  db = openAccess(folder.root, { operation });
}

export function audited(): readonly AuditedChange[] {
  return readTrail(folder).changes;
}
