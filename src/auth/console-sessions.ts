/**
 * One-time links into the console, and the sessions that they begin: random tokens that the running Wirewatch remembers,
 * so a restart ends all of them. Times are epoch milliseconds, by the machine's clock, also in a lab.
 */
import { randomBytes } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import { HOUR_MS, MINUTE_MS } from '../time.ts';
import type { Actor } from './actor.ts';

export const LINK_MS = 10 * MINUTE_MS;
export const SESSION_MS = 12 * HOUR_MS;
/** 32 characters, which nobody can guess. */
const TOKEN_BYTES = 24;
/** Far more than anybody has open. */
const KEPT_MAX = 1000;

/** A link or a session. `token`: the part of a link's address after `#login=`, or the secret of a session. */
export type Ticket = Readonly<{ by: Actor; read_only: boolean; token: string; made_at: number }>;

export function makeTicket({ by, read_only }: Pick<Ticket, 'by' | 'read_only'>, nowMs: number): Ticket {
  return { by, read_only, token: randomBytes(TOKEN_BYTES).toString('base64url'), made_at: nowMs };
}

export function createSessions() {
  const links = new BoundedMap<string, Ticket>(KEPT_MAX);
  const sessions = new BoundedMap<string, Ticket>(KEPT_MAX);
  return {
    addLink: (link: Ticket) => void links.set(link.token, link),
    /** @returns the session that a link begins; null if the link is unknown, used or expired */
    redeem(token: string, nowMs: number): Ticket | null {
      const link = valid(links.get(token), LINK_MS, nowMs);
      if (link === null) return null;
      links.delete(token);
      const session = makeTicket(link, nowMs);
      sessions.set(session.token, session);
      return session;
    },
    /** @returns null if there is no such session, or it has ended */
    open: (token: string, nowMs: number) => valid(sessions.get(token), SESSION_MS, nowMs),
    end: (token: string) => void sessions.delete(token),
    /** Ends all sessions, and links that were not used yet. */
    endAll() {
      links.clear();
      sessions.clear();
    },
  };
}

function valid(ticket: Ticket | undefined, lastsMs: number, nowMs: number): Ticket | null {
  if (ticket === undefined) return null;
  // One from the future was made before the clock was set back: its age is unknown.
  const ageMs = nowMs - ticket.made_at;
  return ageMs >= 0 && ageMs < lastsMs ? ticket : null;
}
