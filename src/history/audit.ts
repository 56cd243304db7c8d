/**
 * The audit trail: who changed which account, subscription or key, paused ingest or asked for an operation, and when, as
 * the access log records it. It shows only the members that are listed here, so never a hash.
 */
import type { DataFolder } from '../store/folder.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { formatMs } from '../time.ts';
import { type Commit, isObject, parse, SNAPSHOT } from './format.ts';
import { LogDamage } from './log-error.ts';
import { entriesAfter, findTail } from './log-reader.ts';

type Row = Readonly<Record<string, unknown>>;

/** One thing that an entry changed. */
export interface AuditedChange {
  readonly at: string;
  /** The number of the entry: changes of one transaction have the same. */
  readonly entry: number;
  /** `command`, `console`; `start`: by the configuration; `snapshot`: a new log was started. */
  readonly kind: string;
  readonly command: string | null;
  /** The user of the operating system; for the console, the one who made the link. */
  readonly actor: string | null;
  /** The user who ran sudo. */
  readonly sudo_user: string | null;
  /** The name that the link gives. */
  readonly as: string | null;
  readonly subject: Subject | 'log';
  readonly id: string | number | null;
  readonly change: 'added' | 'changed' | 'removed' | 'asked for' | 'begun anew';
  /** The members that changed; null: no value. */
  readonly members: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;
}

type Subject = 'installation' | 'account' | 'subscription' | 'key' | 'ingest' | 'operation' | 'console';
/** Subjects without an id: there is one of each. */
const SINGLE: readonly Subject[] = ['installation', 'ingest', 'operation', 'console'];

interface Thing {
  readonly subject: Subject;
  readonly id: string | number | null;
}

/** The members as they are shown; null: it does not exist. */
type View = Readonly<Record<string, unknown>> | null;

const KEYS: Readonly<Record<string, readonly string[]>> = {
  api_key_subscription: ['key_id', 'subscription_id'],
};

/** The audit trail, and why what follows its end cannot be shown; null if nothing does. */
export interface Trail {
  readonly changes: readonly AuditedChange[];
  readonly damage: string | null;
}

/** Reads it from the first entry on: the old value of a member comes from an earlier entry. */
export function readTrail(folder: DataFolder): Trail {
  const trail = new AuditTrail();
  const changes: AuditedChange[] = [];
  try {
    // Before the log, to which entries are being added.
    const mark = readLogMarkOf(folder.access);
    let last = 0;
    let lines: string[] = [];
    for (const { part } of entriesAfter(folder.accessLog, 'access', null)) {
      lines.push(...part.lines);
      if (part.kind === 'commit') {
        changes.push(...trail.read(part.commit, lines));
        last = part.commit.entry;
        lines = [];
      }
    }
    // A reader takes what it cannot read for an entry that is being written: this proves that nothing lies behind it.
    findTail(folder.accessLog, 'access');
    if (mark !== null && mark.entry > last)
      throw new LogDamage(`it can be read up to entry ${last}, but access.db has entry ${mark.entry}`);
    return { changes, damage: null };
  } catch (error) {
    if (!(error instanceof LogDamage)) throw error;
    const damage = `the audit trail is damaged: ${error.message}. What happened after that place cannot be shown. A backup may have it. For what to do, run: wirewatch verify`;
    return { changes, damage };
  }
}

class AuditTrail {
  readonly #tables = new Map<string, Map<string, Row>>();

  /** @param lines of the entry, without its commit line; @throws LogDamage */
  read(commit: Commit, lines: readonly string[]): AuditedChange[] {
    const isSnapshot = commit.operation.kind === SNAPSHOT;
    if (isSnapshot) this.#tables.clear();
    const before = new Map<string, { readonly thing: Thing; readonly view: View }>();
    for (const line of lines) {
      const effect = parse(line);
      const table = isObject(effect) ? (effect.put ?? effect.delete) : undefined;
      if (!isObject(effect) || typeof table !== 'string' || !isObject(effect.row))
        throw new LogDamage('a line of the log has unknown content');
      const thing = thingOf(table, effect.row);
      const key = JSON.stringify(thing);
      if (thing !== null && !before.has(key)) before.set(key, { thing, view: this.#view(thing) });
      this.#apply(table, effect.row, effect.put !== undefined);
    }
    const said = saidOf(commit);
    if (isSnapshot) return [{ ...said, subject: 'log', id: null, change: 'begun anew', members: {} }];
    return [...before.values()].flatMap(({ thing, view }) => changeOf(said, thing, view, this.#view(thing)));
  }

  #apply(table: string, row: Row, isPut: boolean): void {
    const key = JSON.stringify((KEYS[table] ?? ['id']).map((name) => row[name]));
    const rows = this.#tables.get(table) ?? new Map<string, Row>();
    this.#tables.set(table, rows);
    if (isPut) rows.set(key, row);
    else rows.delete(key);
  }

  #view({ subject, id }: Thing): View {
    const row = (table: string, key: unknown) => this.#tables.get(table)?.get(JSON.stringify([key]));
    switch (subject) {
      case 'installation':
        return viewOf(row('installation', 1), ['kind']);
      case 'account':
        return viewOf(row('account', id), ['name', 'daily_rows', 'print_metadata', 'suspended_at']);
      case 'subscription':
        return viewOf(row('subscription', id), ['account_id', 'name', 'time_zone', 'content_types']);
      case 'key': {
        const view = viewOf(row('api_key', id), KEY_MEMBERS);
        const rights = [...(this.#tables.get('api_key_subscription')?.values() ?? [])]
          .filter(({ key_id }) => key_id === id)
          .flatMap(({ subscription_id, content_types }) => rightsText(subscription_id, content_types));
        return view && { ...view, subscriptions: rights.sort() };
      }
      case 'ingest':
        return { paused_at: timeText(row('ingest_pause', 1)?.paused_at) };
      case 'operation':
        return requestView(row('operation', 1)?.request);
      case 'console':
        return { sessions_ended_at: timeText(row('console', 1)?.epoch) };
    }
  }
}

const KEY_MEMBERS = [
  'account_id',
  'name',
  'scopes',
  'expires_at',
  'revoked_at',
  'allow_addresses',
  'daily_rows',
];

const SUBJECTS: Readonly<Record<string, Subject>> = {
  installation: 'installation',
  account: 'account',
  subscription: 'subscription',
  api_key: 'key',
  api_key_subscription: 'key',
  ingest_pause: 'ingest',
  operation: 'operation',
  console: 'console',
};

/** What a row belongs to; null if another row of the entry says it. */
function thingOf(table: string, row: Row): Thing | null {
  const subject = SUBJECTS[table];
  if (subject === undefined) return null;
  const id = table === 'api_key_subscription' ? row.key_id : row.id;
  return {
    subject,
    id: !SINGLE.includes(subject) && (typeof id === 'string' || typeof id === 'number') ? id : null,
  };
}

function viewOf(row: Row | undefined, members: readonly string[]): View {
  if (row === undefined) return null;
  return Object.fromEntries(
    members.map((name) => [name === 'account_id' ? 'account' : name, shown(name, row[name])]),
  );
}

function shown(name: string, value: unknown): unknown {
  if (name.endsWith('_at')) return timeText(value);
  if (name === 'print_metadata') return value === 1;
  const isList = typeof value === 'string' && ['scopes', 'content_types', 'allow_addresses'].includes(name);
  return isList ? JSON.parse(value) : (value ?? null);
}

/** The operation that was requested, without time bounds that exclude nothing. */
function requestView(text: unknown): View {
  const request = typeof text === 'string' ? parse(text) : null;
  if (!isObject(request)) return null;
  const members = Object.entries(request).flatMap(([name, value]) => {
    if (!TIMES.includes(name) || typeof value !== 'number') return [[name, value]];
    return value > 0 && value < Number.MAX_SAFE_INTEGER ? [[name, formatMs(value)]] : [];
  });
  return Object.fromEntries(members);
}

const TIMES: readonly string[] = ['window_start', 'from', 'to'];

function timeText(value: unknown): string | null {
  return typeof value === 'number' ? formatMs(value) : null;
}

/** As `key create --subscriptions` takes them. */
function rightsText(subscription: unknown, contentTypes: unknown): string[] {
  const types: unknown = typeof contentTypes === 'string' ? JSON.parse(contentTypes) : null;
  return Array.isArray(types) ? types.map((type) => `${subscription}:${type}`) : [`${subscription}`];
}

function saidOf({ at, entry, operation }: Commit) {
  const text = (member: string) => (typeof operation[member] === 'string' ? operation[member] : null);
  return {
    at,
    entry,
    kind: operation.kind,
    command: text('command'),
    actor: text('actor'),
    sudo_user: text('sudo_user'),
    as: text('as'),
  };
}

function changeOf(
  said: ReturnType<typeof saidOf>,
  thing: Thing,
  before: View,
  after: View,
): readonly AuditedChange[] {
  // It has nothing to do with the operation that was requested before.
  if (thing.subject === 'operation' && before !== null) return changeOf(said, thing, null, after);
  const members: Record<string, { from: unknown; to: unknown }> = {};
  for (const name of Object.keys(after ?? before ?? {})) {
    const [from, to] = [before?.[name] ?? null, after?.[name] ?? null];
    if (JSON.stringify(from) !== JSON.stringify(to)) members[name] = { from, to };
  }
  if (Object.keys(members).length === 0) return [];
  const change = before === null ? 'added' : after === null ? 'removed' : 'changed';
  const isOperation = thing.subject === 'operation';
  return [{ ...said, ...thing, change: isOperation ? 'asked for' : change, members }];
}
