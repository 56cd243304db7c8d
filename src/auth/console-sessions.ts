/**
 * One-time links into the console, and the sessions that they begin. A link is a random token that the running Wirewatch
 * remembers until it is used. A session is signed with a key derived from the appliance's secret: it cannot be forged, and
 * survives a restart. Both end with the secret, or early: that is in `access.db`, so they stay ended after a restart.
 * Times are epoch milliseconds.
 */
import { randomBytes } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import { createSeal, deriveKey, type Seal } from '../seal.ts';
import { type Database, writing } from '../store/database.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';
import type { Actor } from './actor.ts';

export const LINK_MS = 10 * MINUTE_MS;
export const SESSION_MS = 12 * HOUR_MS;

export interface Person {
  readonly by: Actor;
  readonly read_only: boolean;
}

interface Ticket extends Person {
  /** Random, unique; of a link, the part of its address after `#login=`. */
  readonly id: string;
  /** Of {@link readConsoleEpoch}, when it was made. */
  readonly epoch: number;
  readonly made_at: number;
}

export type Link = Ticket;

export interface OpenSession extends Person {
  readonly id: string;
  readonly expiresMs: number;
}

const ID_BYTES = 16;
/** A link's id is all that it needs: 32 characters. */
const LINK_ID_BYTES = 24;
const LINKS_MAX = 1000;
const ENDED_MAX = 1000;
/** Enough for a name of four-byte characters, encoded twice. */
const TICKET_CHARACTERS_MAX = 2000;

/** @returns a link to be remembered in {@link Links} */
export function makeLink(person: Person, epoch: number, nowMs: number): Link {
  return { ...person, epoch, ...fresh(nowMs, LINK_ID_BYTES) };
}

export class Links extends BoundedMap<string, Link> {
  constructor() {
    super(LINKS_MAX);
  }
}

/** access.db cannot be read, so it is unknown whether a session has ended. */
export class NotReadable extends Error {}

/** Whether a link or a session was not ended early. @throws NotReadable, which the methods of Sessions pass on */
export type IsSessionOpen = (ticket: Pick<Ticket, 'id' | 'epoch'>) => boolean;

export class Sessions {
  readonly #seal: Seal;
  readonly #isOpen: IsSessionOpen;
  readonly #links: Links;
  /** Ids of sessions that were ended in this run: where access.db cannot be changed, only this says so. */
  readonly #ended = new BoundedMap<string, true>(ENDED_MAX);

  constructor(secret: Buffer, isOpen: IsSessionOpen, links: Links) {
    this.#seal = createSeal(deriveKey(secret, 'console'));
    this.#isOpen = isOpen;
    this.#links = links;
  }

  /** @returns the signed session that a link begins; null if it is unknown, used or expired */
  redeem(link: string, nowMs: number): string | null {
    const ticket = this.#valid(this.#links.get(link) ?? null, LINK_MS, nowMs);
    if (ticket === null) return null;
    this.#links.delete(link);
    const { by, read_only, epoch } = ticket;
    return seal(this.#seal, { by, read_only, epoch, ...fresh(nowMs, ID_BYTES) });
  }

  end(id: string): void {
    this.#ended.set(id, true);
  }

  /** @returns null if it is not a session, or has ended */
  open(sealed: string, nowMs: number): OpenSession | null {
    const ticket = this.#valid(unseal(this.#seal, sealed), SESSION_MS, nowMs);
    if (ticket === null) return null;
    const { id, by, read_only, made_at } = ticket;
    return { id, by, read_only, expiresMs: made_at + SESSION_MS };
  }

  #valid(ticket: Ticket | null, lastsMs: number, nowMs: number): Ticket | null {
    if (ticket === null || this.#ended.has(ticket.id) || !this.#isOpen(ticket)) return null;
    // One from the future was made before the clock was set back: its age is unknown.
    const ageMs = nowMs - ticket.made_at;
    return ageMs >= 0 && ageMs < lastsMs ? ticket : null;
  }
}

function fresh(nowMs: number, bytes: number): Pick<Ticket, 'id' | 'made_at'> {
  return { id: randomBytes(bytes).toString('base64url'), made_at: nowMs };
}

function seal({ sign }: Seal, ticket: Ticket): string {
  const text = Buffer.from(JSON.stringify(ticket)).toString('base64url');
  return `${text}.${sign(text).toString('base64url')}`;
}

function unseal({ isSigned }: Seal, sealed: string): Ticket | null {
  const [text = '', mac = '', ...more] = sealed.slice(0, TICKET_CHARACTERS_MAX + 1).split('.');
  if (sealed.length > TICKET_CHARACTERS_MAX || more.length > 0) return null;
  if (!isSigned(Buffer.from(mac, 'base64url'), text)) return null;
  // Only this program can have signed it, so its content is trusted.
  return JSON.parse(Buffer.from(text, 'base64url').toString());
}

/** A session lasts hours; a clock that was days ahead must not make an ended one valid again. */
const KEPT_MS = 30 * DAY_MS;

const SELECT_EPOCH = 'SELECT epoch FROM console WHERE id = 1';
const RAISE_EPOCH = `
  INSERT INTO console (id, epoch) VALUES (1, :nowMs) ON CONFLICT (id) DO UPDATE SET epoch = max(epoch + 1, :nowMs)`;
const SELECT_ENDED = 'SELECT 1 FROM ended_session WHERE id = ?';
const INSERT_ENDED = `
  INSERT INTO ended_session (id, ended_at) VALUES (:id, :nowMs) ON CONFLICT (id) DO NOTHING`;
const DELETE_OLD = 'DELETE FROM ended_session WHERE ended_at < :nowMs - :keptMs';

/** Links and sessions contain the epoch in which they were created, and end with it. */
export function readConsoleEpoch(db: Database): number {
  return db.prepare<[], { epoch: number }>(SELECT_EPOCH).get()?.epoch ?? 0;
}

/** Ends all links and sessions. The new epoch is a time: none of a lost end of the log is used again. */
export function endConsoleSessions(db: Database, nowMs: number): void {
  writing(db, () => db.prepare(RAISE_EPOCH).run({ nowMs }));
}

export function isConsoleSessionEnded(db: Database, id: string): boolean {
  return db.prepare<[string]>(SELECT_ENDED).get(id) !== undefined;
}

export function endConsoleSession(db: Database, id: string, nowMs: number): void {
  writing(db, () => {
    db.prepare(INSERT_ENDED).run({ id, nowMs });
    db.prepare(DELETE_OLD).run({ nowMs, keptMs: KEPT_MS });
  });
}
