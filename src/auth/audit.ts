/**
 * The audit trail: who changed which account, subscription or key, paused ingest or asked for an operation, and when. It
 * is a table of `access.db`, written in the transaction of the change itself from what triggers noted, so that no code
 * can forget it and nothing can part the two. It has only the members that are listed here, so never a hash.
 */
import { crc32 } from 'node:zlib';
import { counted } from '../counted.ts';
import { type Database, writing } from '../store/database.ts';
import { formatMs } from '../time.ts';
import type { Doing } from './actor.ts';

type Row = Readonly<Record<string, unknown>>;
type Subject = 'installation' | 'account' | 'subscription' | 'key' | 'ingest' | 'operation';

/** One thing that a transaction changed. */
interface Change {
  readonly subject: Subject;
  /** Null: there is only one. */
  readonly id: string | number | null;
  readonly change: 'added' | 'changed' | 'removed' | 'asked for';
  /** The members that changed; null: no value. */
  readonly members: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;
}

export interface AuditedChange extends Change {
  readonly at: string;
  /** The number of the entry: changes of one transaction have the same. */
  readonly entry: number;
  /** `command`, `console`, `api`; `start`: by the configuration. */
  readonly kind: string;
  readonly command: string | null;
  /** The user of the operating system; for the console, the one who made the link. */
  readonly actor: string | null;
  /** The user who ran sudo. */
  readonly sudo_user: string | null;
  /** The name that the link gives. */
  readonly as: string | null;
}

interface Watched {
  readonly subject: Subject;
  /** The column with the id of the subject; null: there is only one. */
  readonly id: string | null;
  readonly columns: readonly string[];
}

const WATCHED: Readonly<Record<string, Watched>> = {
  installation: { subject: 'installation', id: null, columns: ['kind'] },
  account: watched('account', ['name', 'daily_rows', 'print_metadata', 'suspended_at']),
  subscription: watched('subscription', ['account_id', 'name', 'time_zone', 'content_types']),
  api_key: watched('key', [
    'account_id',
    'name',
    'scopes',
    'expires_at',
    'revoked_at',
    'allow_addresses',
    'daily_rows',
  ]),
  ingest_pause: { subject: 'ingest', id: null, columns: ['paused_at'] },
};

function watched(subject: Subject, columns: readonly string[]): Watched {
  return { subject, id: 'id', columns };
}

/** The table with the subscriptions of keys. */
const RIGHTS = 'api_key_subscription';
const REQUESTS = 'operation';

/** The subscriptions of a key, as `key create --subscriptions` takes them: a JSON array. */
const RIGHTS_OF = (key: string) => `
  (SELECT json_group_array(text ORDER BY text) FROM (
    SELECT subscription_id || coalesce(':' || type.value, '') AS text
    FROM main.${RIGHTS} LEFT JOIN json_each(content_types) AS type WHERE key_id = ${key}))`;
const SELECT_RIGHTS = `SELECT ${RIGHTS_OF('?')}`;

const CREATE_TOUCHED = `
  CREATE TEMP TABLE touched (number INTEGER PRIMARY KEY, place TEXT NOT NULL, id ANY, before TEXT, after TEXT) STRICT`;
const SELECT_TOUCHED = 'SELECT place, id, before, after FROM temp.touched ORDER BY number';
const DELETE_TOUCHED = 'DELETE FROM temp.touched';
const INSERT_REQUEST = `INSERT INTO temp.touched (place, after) VALUES ('${REQUESTS}', ?)`;
const INSERT_ENTRY = `
  INSERT INTO audit (entry, at, operation, changes, checksum)
  VALUES (:entry, :at, :operation, :changes, :checksum)`;
const SELECT_LAST = 'SELECT coalesce(max(entry), 0) FROM audit';
const SELECT_ENTRIES = 'SELECT entry, at, operation, changes, checksum FROM audit ORDER BY entry';

interface Touched {
  readonly place: string;
  readonly id: string | number | null;
  readonly before: Row | null;
  readonly after: Row | null;
}

/** Notes what the connection changes from now on, until {@link writeEntry} takes it. */
export function watchChanges(db: Database): void {
  db.pragma('temp_store = MEMORY');
  db.exec(CREATE_TOUCHED);
  for (const [table, { id, columns }] of Object.entries(WATCHED)) {
    const row = (version: string) =>
      `json_object(${columns.map((name) => `'${name}', ${version}.${name}`).join(', ')})`;
    const note = (event: string, version: string, before: string, after: string) =>
      db.exec(`CREATE TEMP TRIGGER ${event.toLowerCase()}_of_${table} AFTER ${event} ON main.${table} BEGIN
        INSERT INTO touched (place, id, before, after)
        VALUES ('${table}', ${id === null ? 'NULL' : `${version}.${id}`}, ${before}, ${after}); END`);
    note('INSERT', 'NEW', 'NULL', row('NEW'));
    note('UPDATE', 'NEW', row('OLD'), row('NEW'));
    note('DELETE', 'OLD', row('OLD'), 'NULL');
  }
  for (const [event, version] of [
    ['INSERT', 'NEW'],
    ['UPDATE', 'OLD'],
    ['DELETE', 'OLD'],
  ])
    db.exec(`CREATE TEMP TRIGGER before_${event}_of_rights BEFORE ${event} ON main.${RIGHTS}
      WHEN NOT EXISTS (SELECT 1 FROM touched WHERE place = '${RIGHTS}' AND id = ${version}.key_id) BEGIN
        INSERT INTO touched (place, id, before)
        VALUES ('${RIGHTS}', ${version}.key_id, json_object('subscriptions', json(${RIGHTS_OF(`${version}.key_id`)}))); END`);
}

/** Notes an operation that changes no row here. @param request without a secret; times are epoch milliseconds */
export function noteOperation(access: Database, request: { readonly kind: string }): void {
  writing(access, () => access.prepare(INSERT_REQUEST).run(JSON.stringify(request)));
}

/** Writes what was noted, in the transaction that is open. @param nowMs epoch milliseconds */
export function writeEntry(db: Database, doing: Doing, nowMs: number): void {
  const touched = db.prepare<[], Record<keyof Touched, string | null>>(SELECT_TOUCHED).all().map(touchedOf);
  db.prepare(DELETE_TOUCHED).run();
  const changes = changesOf(db, touched);
  if (changes.length === 0) return;
  const entry = (db.prepare<[], number>(SELECT_LAST).pluck().get() ?? 0) + 1;
  const texts = { operation: JSON.stringify(doing), changes: JSON.stringify(changes) };
  const stored = { entry, at: nowMs, ...texts };
  db.prepare(INSERT_ENTRY).run({ ...stored, checksum: checksumOf(stored) });
}

type StoredEntry = Readonly<Record<'entry' | 'at', number> & Record<'operation' | 'changes', string>>;

function checksumOf({ entry, at, operation, changes }: StoredEntry): number {
  return crc32(JSON.stringify([entry, at, operation, changes]));
}

interface Span {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * @param span of time: `[from, to)`, epoch milliseconds
 * @returns the changes, the oldest first, and in a sentence which part is damaged; null: none is
 */
export function readTrail(db: Database, { from = 0, to = Number.POSITIVE_INFINITY }: Span = {}) {
  const changes: AuditedChange[] = [];
  const damaged: number[] = [];
  let last = 0;
  for (const row of db.prepare<[], StoredEntry & { checksum: number }>(SELECT_ENTRIES).iterate()) {
    // Entries are numbered without gaps.
    for (last += 1; last < row.entry; last += 1) damaged.push(last);
    if (checksumOf(row) !== row.checksum) damaged.push(row.entry);
    else if (row.at >= from && row.at < to) changes.push(...entryOf(row));
  }
  if (damaged.length === 0) return { changes, damage: null };
  const numbers = damaged.slice(0, 10).join(', ') + (damaged.length > 10 ? ', …' : '');
  const damage = `the audit trail is damaged: ${counted(damaged.length, 'entry', 'entries')} (number ${numbers}) cannot be shown. A backup may have it. For what to do, run: wirewatch verify`;
  return { changes, damage };
}

function entryOf({ entry, at, operation, changes }: StoredEntry): AuditedChange[] {
  const doing: Doing = JSON.parse(operation);
  const own: Change[] = JSON.parse(changes);
  const { kind, command = null, actor = null, sudo_user = null, as = null } = doing;
  return own.map((change) => ({ at: formatMs(at), entry, kind, command, actor, sudo_user, as, ...change }));
}

function touchedOf({ place, id, before, after }: Record<keyof Touched, string | number | null>): Touched {
  const row = (text: unknown): Row | null => (typeof text === 'string' ? JSON.parse(text) : null);
  return { place: String(place), id, before: row(before), after: row(after) };
}

/** One change a subject, in the order in which they were first touched. */
function changesOf(db: Database, touched: readonly Touched[]): Change[] {
  const bySubject = Map.groupBy(touched, ({ place, id }) => JSON.stringify([subjectOf(place), id]));
  return [...bySubject.values()].flatMap((own) => changeOf(db, own));
}

function subjectOf(place: string): Subject {
  return place === RIGHTS ? 'key' : (WATCHED[place]?.subject ?? 'operation');
}

function changeOf(db: Database, touched: readonly Touched[]): Change[] {
  const [first] = touched;
  if (first === undefined) return [];
  const subject = subjectOf(first.place);
  if (subject === 'operation')
    return touched.map(({ after }) => ({
      subject,
      id: null,
      change: 'asked for',
      members: membersOf(null, requestView(after ?? {})),
    }));
  const { id } = first;
  const rows = touched.filter((row) => row.place !== RIGHTS);
  const rights = touched.find((row) => row.place === RIGHTS)?.before ?? {};
  const before = rows[0] === undefined ? {} : viewOf(subject, rows[0].before);
  const after = rows.length === 0 ? {} : viewOf(subject, rows.at(-1)?.after ?? null);
  const members = membersOf(
    before && { ...before, ...rights },
    after && { ...after, ...('subscriptions' in rights && { subscriptions: rightsNow(db, id) }) },
  );
  if (Object.keys(members).length === 0) return [];
  const later = after === null ? 'removed' : 'changed';
  const change = before === null ? 'added' : later;
  return [{ subject, id, change, members }];
}

function rightsNow(db: Database, key: Touched['id']): unknown {
  return JSON.parse(db.prepare<unknown[], string>(SELECT_RIGHTS).pluck().get(key) ?? '[]');
}

function membersOf(before: Row | null, after: Row | null): Change['members'] {
  const members: Record<string, { from: unknown; to: unknown }> = {};
  for (const name of Object.keys(after ?? before ?? {})) {
    const [from, to] = [before?.[name] ?? null, after?.[name] ?? null];
    if (JSON.stringify(from) !== JSON.stringify(to)) members[name] = { from, to };
  }
  return members;
}

/** The members as they are shown; null: it does not exist. */
function viewOf(subject: Subject, row: Row | null): Row | null {
  // There is always one.
  if (subject === 'ingest') return { paused_at: timeText(row?.paused_at) };
  const member = ([name, value]: [string, unknown]) => [
    name === 'account_id' ? 'account' : name,
    shown(name, value),
  ];
  return row && Object.fromEntries(Object.entries(row).map(member));
}

function shown(name: string, value: unknown): unknown {
  if (name.endsWith('_at')) return timeText(value);
  if (name === 'print_metadata') return value === 1;
  const isList = typeof value === 'string' && ['scopes', 'content_types', 'allow_addresses'].includes(name);
  return isList ? JSON.parse(value) : (value ?? null);
}

const TIMES: readonly string[] = ['window_start', 'from', 'to'];

/** The operation that was requested, without time bounds that exclude nothing. */
function requestView(request: Row): Row {
  const members = Object.entries(request).flatMap(([name, value]) => {
    if (!TIMES.includes(name) || typeof value !== 'number') return [[name, value]];
    return value > 0 && value < Number.MAX_SAFE_INTEGER ? [[name, formatMs(value)]] : [];
  });
  return Object.fromEntries(members);
}

function timeText(value: unknown): string | null {
  return typeof value === 'number' ? formatMs(value) : null;
}
