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

export interface ConnectionRoom {
  /**
   * Accepts a connection, or closes it at once.
   *
   * @param socket the TCP one, before any handshake
   * @returns whether it was accepted
   */
  admit(socket: Socket): boolean;
  /** Every request on it is answered: from now on it may be closed for others. @param socket the TCP or the TLS one */
  setIdle(socket: Socket): void;
  /** A request has arrived on it. */
  setBusy(socket: Socket): void;
  open(): number;
}

interface Member {
  readonly socket: Socket;
  /** What counts as one address; null for a trusted proxy, which many clients share. */
  readonly network: string | null;
}

interface Idle {
  readonly socket: Socket;
  /** When it became idle; more by now means that a request is arriving. */
  readonly bytesRead: number;
}

export function createConnectionRoom({ limits, onRefused }: RoomOptions): ConnectionRoom {
  const isTrusted = createAddressList(limits.trusted_proxies);
  const members = new Map<string, Member>();
  const counts = new Map<string, number>();
  /** In the order in which they became idle. */
  const idle = new Map<string, Idle>();

  function leave(peer: string): void {
    const network = members.get(peer)?.network ?? null;
    members.delete(peer);
    idle.delete(peer);
    if (network === null) return;
    const left = (counts.get(network) ?? 0) - 1;
    if (left > 0) counts.set(network, left);
    else counts.delete(network);
  }

  /** @param network null: any. @returns whether there was an idle one */
  function closeIdle(network: string | null): boolean {
    for (const [peer, { socket, bytesRead }] of idle) {
      if (network !== null && members.get(peer)?.network !== network) continue;
      if (socket.bytesRead !== bytesRead) continue;
      leave(peer);
      socket.destroy();
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
        return false;
      }
      const peer = peerOf(socket);
      // An earlier connection of this port, whose end is not noticed yet.
      if (members.has(peer)) leave(peer);
      const network = isTrusted(address) ? null : addressNetwork(address);
      const limit = limitBefore(network);
      if (limit !== null) {
        socket.destroy();
        onRefused(address, limit);
        return false;
      }
      members.set(peer, { socket, network });
      if (network !== null) counts.set(network, (counts.get(network) ?? 0) + 1);
      socket.once('close', () => {
        if (members.get(peer)?.socket === socket) leave(peer);
      });
      return true;
    },
    setIdle(socket) {
      const peer = peerOf(socket);
      if (members.has(peer)) idle.set(peer, { socket, bytesRead: socket.bytesRead });
    },
    setBusy: (socket) => void idle.delete(peerOf(socket)),
    open: () => members.size,
  };
}

/** Address and port of the other end; the same for the TCP and the TLS socket of a connection. */
export function peerOf(socket: Socket): string {
  let peer = peers.get(socket);
  if (peer === undefined) {
    peer = `${socket.remoteAddress} ${socket.remotePort}`;
    peers.set(socket, peer);
  }
  return peer;
}

/** Kept, since every request needs it twice. */
const peers = new WeakMap<Socket, string>();
