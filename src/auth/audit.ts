/**
 * The audit trail: who changed which account, subscription or key, paused ingest or asked for an operation, and when. It
 * is a table of `access.db`, written in each transaction that changed something, by comparing what is listed here before
 * and after it: no code can forget it, and it never has a hash.
 */
import { crc32 } from 'node:zlib';
import { counted } from '../counted.ts';
import { getOrMake } from '../get-or-make.ts';
import { type Database, jsonMembers, writing } from '../store/database.ts';
import { formatMs } from '../time.ts';
import type { Doing } from './actor.ts';
import { rightsOf } from './keys.ts';

type Row = Readonly<Record<string, unknown>>;

/** One thing that a transaction changed. */
interface Change {
  readonly subject: 'installation' | 'account' | 'subscription' | 'key' | 'ingest' | 'operation';
  /** Null: there is only one. */
  readonly id: string | number | null;
  readonly change: 'added' | 'changed' | 'removed' | 'asked for';
  /** The members that changed; null: no value. */
  readonly members: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;
}

/** A change, with who made it. */
export type AuditedChange = ReturnType<typeof entryOf>[number];

/** What is watched: raw columns, so that a damaged row stops no change of another. */
const SELECT_STATE = `
  SELECT 'installation' AS subject, NULL AS id, json_object(${jsonMembers('kind')}) AS members FROM installation
  UNION ALL
  SELECT 'account', id, json_object(${jsonMembers('name', 'daily_rows', 'print_metadata', 'suspended_at')}) FROM account
  UNION ALL
  SELECT 'subscription', id,
    json_object('account', account_id, ${jsonMembers('name', 'time_zone', 'content_types')}) FROM subscription
  UNION ALL
  SELECT 'key', id, json_object(
      'account', account_id,
      ${jsonMembers('name', 'scopes', 'expires_at', 'revoked_at', 'allow_addresses', 'daily_rows')},
      'subscriptions', json((
        SELECT json_group_array(json_array(subscription_id, content_types) ORDER BY subscription_id)
        FROM api_key_subscription WHERE key_id = api_key.id)))
    FROM api_key
  UNION ALL
  SELECT 'ingest', NULL, json_object('paused_at', (SELECT paused_at FROM ingest_pause))`;

const INSERT_ENTRY = `
  INSERT INTO audit (entry, at, operation, changes, checksum)
  VALUES (:entry, :at, :operation, :changes, :checksum)`;
const SELECT_LAST = 'SELECT coalesce(max(entry), 0) FROM audit';
const SELECT_ENTRIES = 'SELECT entry, at, operation, changes, checksum FROM audit ORDER BY entry';

/** Raw members by subject and id. */
export type AuditedState = ReadonlyMap<string, string>;

/** What the open transaction of a connection notes besides, as JSON. */
const asked = new WeakMap<Database, string[]>();

/** Call it in a transaction, before its work. */
export function auditedState(db: Database): AuditedState {
  // An earlier transaction may have been rolled back.
  asked.delete(db);
  const rows = db.prepare<[], Readonly<Record<'subject' | 'id' | 'members', string>>>(SELECT_STATE).all();
  return new Map(rows.map((row) => [JSON.stringify([row.subject, row.id]), row.members]));
}

/** Notes an operation that changes no row here. @param request without a secret; times are epoch milliseconds */
export const noteOperation = (access: Database, request: { readonly kind: string }) =>
  void writing(access, () => getOrMake(asked, access, () => []).push(JSON.stringify(request)));

/** Writes what changed, if anything did, in the transaction that is open. @param nowMs epoch milliseconds */
export function writeEntry(db: Database, before: AuditedState, doing: Doing, nowMs: number): void {
  const requests = asked.get(db) ?? [];
  const changes = [...changesBetween(before, auditedState(db)), ...requests.map(requested)];
  if (changes.length === 0) return;
  const entry = (db.prepare<[], number>(SELECT_LAST).pluck().get() ?? 0) + 1;
  const stored = { entry, at: nowMs, operation: JSON.stringify(doing), changes: JSON.stringify(changes) };
  db.prepare(INSERT_ENTRY).run({ ...stored, checksum: checksumOf(stored) });
}

/** Numbers of damaged entries that are named. */
const NAMED_MAX = 10;

type StoredEntry = Readonly<Record<'entry' | 'at', number> & Record<'operation' | 'changes', string>>;

const checksumOf = ({ entry, at, operation, changes }: StoredEntry): number =>
  crc32(JSON.stringify([entry, at, operation, changes]));

/**
 * @param span of time: `[from, to)`, epoch milliseconds
 * @returns the changes, the oldest first, and in a sentence which part is damaged; null: none is
 */
export function readTrail(db: Database, span: { readonly [end in 'from' | 'to']?: number | undefined } = {}) {
  const { from = 0, to = Number.POSITIVE_INFINITY } = span;
  const changes: AuditedChange[] = [];
  let damaged = 0;
  /** The first of them: a damaged number, or the next entry after it, can make a gap of any length. */
  const named: number[] = [];
  const addDamaged = (first: number, end: number) => {
    damaged += end - first;
    for (let entry = first; entry < end && named.length < NAMED_MAX; entry += 1) named.push(entry);
  };
  let last = 0;
  let unsound: number[] = [];
  for (const row of db.prepare<[], StoredEntry & { checksum: number }>(SELECT_ENTRIES).iterate()) {
    if (checksumOf(row) !== row.checksum) {
      unsound.push(row.entry);
      continue;
    }
    // Entries are numbered without gaps.
    addDamaged(last + 1, row.entry);
    last = row.entry;
    unsound = [];
    if (row.at >= from && row.at < to) changes.push(...entryOf(row));
  }
  for (const entry of unsound) addDamaged(entry, entry + 1);
  if (damaged === 0) return { changes, damage: null };
  const numbers = named.join(', ') + (damaged > NAMED_MAX ? ', …' : '');
  const damage = `the audit trail is damaged: ${counted(damaged, 'entry', 'entries')} (number ${numbers}) cannot be shown. A backup may have it. For what to do, run: wirewatch verify`;
  return { changes, damage };
}

/** `entry`: its number; changes of one transaction have the same. `actor`: for the console, the one who made the link. */
function entryOf({ entry, at, operation, changes }: StoredEntry) {
  const doing: Doing = JSON.parse(operation);
  const own: Change[] = JSON.parse(changes);
  const { kind, command = null, actor = null, sudo_user = null, as = null } = doing;
  return own.map((change) => ({ at: formatMs(at), entry, kind, command, actor, sudo_user, as, ...change }));
}

/** Accounts first, then subscriptions, then keys. */
const changesBetween = (before: AuditedState, after: AuditedState): Change[] =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => {
      const [subject, id] = JSON.parse(name);
      const [from, to] = [viewOf(before.get(name)), viewOf(after.get(name))];
      const later = to === null ? 'removed' : 'changed';
      return { subject, id, change: from === null ? 'added' : later, members: membersOf(from, to) };
    });

function membersOf(before: Row | null, after: Row | null): Change['members'] {
  const members: Record<string, { from: unknown; to: unknown }> = {};
  for (const name of Object.keys(after ?? before ?? {})) {
    const [from, to] = [before?.[name] ?? null, after?.[name] ?? null];
    if (JSON.stringify(from) !== JSON.stringify(to)) members[name] = { from, to };
  }
  return members;
}

/** The members as they are shown; null: it does not exist. */
function viewOf(raw: string | undefined): Row | null {
  if (raw === undefined) return null;
  const members: [string, unknown][] = Object.entries(JSON.parse(raw));
  return Object.fromEntries(members.map(([name, value]) => [name, shown(name, value)]));
}

function shown(name: string, value: unknown): unknown {
  if (name.endsWith('_at')) return typeof value === 'number' ? formatMs(value) : null;
  if (name === 'print_metadata') return value === 1;
  if (Array.isArray(value))
    return rightsOf(value.map(([id, types]) => ({ id, content_types: JSON.parse(types ?? 'null') })));
  const isList = ['scopes', 'content_types', 'allow_addresses'].includes(name);
  return typeof value === 'string' && isList ? JSON.parse(value) : value;
}

/** An operation that was requested, without time bounds that exclude nothing. */
function requested(request: string): Change {
  const given: [string, unknown][] = Object.entries(JSON.parse(request));
  const view = given.flatMap(([name, value]) => {
    const isTime = ['window_start', 'from', 'to'].includes(name);
    if (!isTime || typeof value !== 'number') return [[name, value]];
    return value > 0 && value < Number.MAX_SAFE_INTEGER ? [[name, formatMs(value)]] : [];
  });
  const members = membersOf(null, Object.fromEntries(view));
  return { subject: 'operation', id: null, change: 'asked for', members };
}
