/**
 * Limits how many connections are open, in all and from one address, and closes idle ones for new ones.
 *
 * Without a limit by address, one client that leaves a thousand connections open would shut out everybody, health
 * probes included. Closing an idle connection loses nothing.
 */
import type { Socket } from 'node:net';
import { addressNetwork, createAddressList, normalAddress } from '../addresses.ts';
import type { Settings } from '../config/schema.ts';
import type { Limit } from '../limits/limit-names.ts';

export interface RoomOptions {
  readonly limits: Pick<
    Settings['server'],
    'max_connections' | 'max_connections_per_address' | 'trusted_proxies'
  >;
  /** Called for each connection that a limit closed at once. */
  readonly onRefused: (address: string, limit: Limit) => void;
}

/** An open connection. */
export interface Member {
  /** The TCP socket; under TLS, once the handshake is done, the TLS one. */
  socket: Socket;
  /** What counts as one address; null for a trusted proxy, which many clients share. */
  readonly network: string | null;
  /** Read when it became idle; more by now means that a request is arriving. */
  idleBytes: number;
}

export interface ConnectionRoom {
  /**
   * Accepts a connection, or closes it at once.
   *
   * @param socket the TCP one, before any handshake
   * @returns null if it was closed
   */
  admit(socket: Socket): Member | null;
  /** Every request on it is answered: from now on it may be closed for others. */
  setIdle(member: Member): void;
  /** A request has arrived on it. */
  setBusy(member: Member): void;
  open(): number;
}

export function createConnectionRoom({ limits, onRefused }: RoomOptions): ConnectionRoom {
  const isTrusted = createAddressList(limits.trusted_proxies);
  const members = new Set<Member>();
  const counts = new Map<string, number>();
  /** In the order in which they became idle. */
  const idle = new Set<Member>();

  function leave(member: Member): void {
    const { network } = member;
    idle.delete(member);
    if (!members.delete(member) || network === null) return;
    const left = (counts.get(network) ?? 0) - 1;
    if (left > 0) counts.set(network, left);
    else counts.delete(network);
  }

  /** @param network null: any. @returns whether there was an idle one */
  function closeIdle(network: string | null): boolean {
    for (const member of idle) {
      if (network !== null && member.network !== network) continue;
      if (member.socket.bytesRead !== member.idleBytes) continue;
      leave(member);
      member.socket.destroy();
      return true;
    }
    return false;
  }

  /** Makes room where there is none. @returns the limit that still refuses the connection; null: none */
  function limitBefore(network: string | null): Limit | null {
    const isCrowded = network !== null && (counts.get(network) ?? 0) >= limits.max_connections_per_address;
    if (isCrowded && !closeIdle(network)) return 'connections_per_address';
    return members.size >= limits.max_connections && !closeIdle(null) ? 'connections' : null;
  }

  return {
    admit(socket) {
      const address = normalAddress(socket.remoteAddress ?? '');
      // The client is gone already.
      if (address === null) {
        socket.destroy();
        return null;
      }
      const network = isTrusted(address) ? null : addressNetwork(address);
      const limit = limitBefore(network);
      if (limit !== null) {
        socket.destroy();
        onRefused(address, limit);
        return null;
      }
      const member: Member = { socket, network, idleBytes: 0 };
      members.add(member);
      if (network !== null) counts.set(network, (counts.get(network) ?? 0) + 1);
      socket.once('close', () => leave(member));
      return member;
    },
    setIdle(member) {
      if (!members.has(member)) return;
      member.idleBytes = member.socket.bytesRead;
      idle.add(member);
    },
    setBusy: (member) => void idle.delete(member),
    open: () => members.size,
  };
}
