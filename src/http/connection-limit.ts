/**
 * Limits how many connections are open, in all and from one address, so that no client shuts out the others, health probes
 * included. For a new connection it closes the one that has waited longest for a complete request.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { addressNetwork, createAddressList, normalAddress } from '../addresses.ts';
import type { Settings } from '../config/schema.ts';
import type { Limit } from './request-metrics.ts';

export interface RoomOptions {
  readonly limits: Pick<
    Settings['server'],
    'max_connections' | 'max_connections_per_address' | 'trusted_proxies'
  >;
  readonly onRefused: (address: string, limit: Limit) => void;
}

export interface Member {
  /** The TCP socket; under TLS, once the handshake is done, the TLS one. */
  socket: Socket;
  readonly address: string;
  /** What counts as one address; null for a trusted proxy, which many clients share. */
  readonly network: string | null;
}

type Arriving = Pick<IncomingMessage, 'complete'> | null;

export type ConnectionRoom = ReturnType<typeof createConnectionRoom>;

export function createConnectionRoom({ limits, onRefused }: RoomOptions) {
  const isTrusted = createAddressList(limits.trusted_proxies);
  const members = new Set<Member>();
  const counts = new Map<string, number>();
  /** Without a complete request, the longest first, with the request whose body arrives; null before its head. */
  const waiting = new Map<Member, Arriving>();

  function leave(member: Member): void {
    const { network } = member;
    waiting.delete(member);
    if (!members.delete(member) || network === null) return;
    const left = (counts.get(network) ?? 0) - 1;
    if (left > 0) counts.set(network, left);
    else counts.delete(network);
  }

  /** Closes one of a network; null: of any. @returns whether there was one */
  function makeRoom(network: string | null): boolean {
    for (const [member, request] of waiting) {
      if (network !== null && member.network !== network) continue;
      if (request?.complete === true) {
        waiting.delete(member);
        continue;
      }
      leave(member);
      member.socket.destroy();
      return true;
    }
    return false;
  }

  /** Makes room where there is none. @returns the limit that still refuses the connection; null: none */
  function limitBefore(network: string | null): Limit | null {
    const isCrowded = network !== null && (counts.get(network) ?? 0) >= limits.max_connections_per_address;
    if (isCrowded && !makeRoom(network)) return 'connections_per_address';
    return members.size >= limits.max_connections && !makeRoom(null) ? 'connections' : null;
  }

  return {
    /** Accepts a connection, or closes it at once: null. @param socket the TCP one, before any handshake */
    admit(socket: Socket): Member | null {
      const address = normalAddress(socket.remoteAddress ?? '');
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
      const member: Member = { socket, address, network };
      members.add(member);
      waiting.set(member, null);
      if (network !== null) counts.set(network, (counts.get(network) ?? 0) + 1);
      socket.once('close', () => leave(member));
      return member;
    },
    /** It waits for a request, or for the body of this one. */
    setWaiting(member: Member, request: Arriving): void {
      waiting.delete(member);
      if (members.has(member)) waiting.set(member, request);
    },
    /** A request on it is being answered: it is not closed for others. */
    setBusy: (member: Member) => void waiting.delete(member),
    open: () => members.size,
  };
}
