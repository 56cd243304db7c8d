/**
 * Room for connections: how many may be open, in all and from one address, and which are closed for new ones.
 *
 * Without a bound by address, one client that leaves a thousand connections open would shut out everybody, probes of
 * health too. Where room is needed, connections on which nothing is asked go first: closing those loses nothing.
 */
import type { Socket } from 'node:net';
import { addressNetwork, createAddressList, normalAddress } from '../addresses.ts';
import type { Settings } from '../config/schema.ts';
import type { Limit } from '../limits/limit.ts';

export interface RoomOptions {
  readonly limits: Pick<
    Settings['server'],
    'max_connections' | 'max_connections_per_address' | 'trusted_proxies'
  >;
  /** Told of each connection that was closed at once, and by which limit. */
  readonly onRefused: (address: string, limit: Limit) => void;
}

export interface ConnectionRoom {
  /**
   * Takes a connection in, or closes it at once.
   *
   * @param socket the bare one, before any handshake
   * @returns whether it is in
   */
  admit(socket: Socket): boolean;
  /** All that it was asked is answered: from now on it may be closed for others. The one below TLS, or the one above. */
  setIdle(socket: Socket): void;
  /** It is asked something. */
  setBusy(socket: Socket): void;
  open(): number;
}

interface Member {
  readonly socket: Socket;
  /** What is counted as one address; null for a proxy, through which many clients come. */
  readonly network: string | null;
}

interface Idle {
  readonly socket: Socket;
  /** Of the socket, when it became idle: with more of them something is being asked. */
  readonly bytesRead: number;
}

export function createConnectionRoom({ limits, onRefused }: RoomOptions): ConnectionRoom {
  const isTrusted = createAddressList(limits.trusted_proxies);
  const members = new Map<string, Member>();
  const counts = new Map<string, number>();
  /** The one that has been idle longest comes first. */
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

  /** @param network null: of any. @returns whether there was one */
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

  /** The limit that keeps it out; null when there is room, or room was made. */
  function limitBefore(network: string | null): Limit | null {
    const isCrowded = network !== null && (counts.get(network) ?? 0) >= limits.max_connections_per_address;
    if (isCrowded && !closeIdle(network)) return 'connections_per_address';
    return members.size >= limits.max_connections && !closeIdle(null) ? 'connections' : null;
  }

  return {
    admit(socket) {
      const address = normalAddress(socket.remoteAddress ?? '');
      // Gone already: there is nobody to count.
      if (address === null) {
        socket.destroy();
        return false;
      }
      const peer = peerOf(socket);
      // Of one whose end is not noticed yet.
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

/** Of the two sockets of one TLS connection it is the same. */
export function peerOf(socket: Socket): string {
  let peer = peers.get(socket);
  if (peer === undefined) {
    peer = `${socket.remoteAddress} ${socket.remotePort}`;
    peers.set(socket, peer);
  }
  return peer;
}

/** Asked for twice a request. */
const peers = new WeakMap<Socket, string>();
