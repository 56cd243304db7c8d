/**
 * Limits how many connections are open, in all and from one address, so that no client shuts out the others, health probes
 * included. For new connections it closes those on which nothing is answered: idle ones first, since that loses nothing,
 * then those on which no complete request has arrived, the oldest first.
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
  /** Called for each connection that a limit closed, except idle ones. */
  readonly onRefused: (address: string, limit: Limit) => void;
}

export interface Member {
  /** The TCP socket; under TLS, once the handshake is done, the TLS one. */
  socket: Socket;
  readonly address: string;
  /** What counts as one address; null for a trusted proxy, which many clients share. */
  readonly network: string | null;
  /** Read when it became idle; more by now means that a request is arriving. */
  idleBytes: number;
}

export type ConnectionRoom = ReturnType<typeof createConnectionRoom>;

export function createConnectionRoom({ limits, onRefused }: RoomOptions) {
  const isTrusted = createAddressList(limits.trusted_proxies);
  const members = new Set<Member>();
  const counts = new Map<string, number>();
  /** In the order in which they became idle. */
  const idle = new Set<Member>();
  /**
   * On which no complete request has arrived since they were opened or answered, in that order, with the request whose
   * body is arriving; null before its head is complete.
   */
  const receiving = new Map<Member, Pick<IncomingMessage, 'complete'> | null>();

  function leave(member: Member): void {
    const { network } = member;
    setBusy(member);
    if (!members.delete(member) || network === null) return;
    const left = (counts.get(network) ?? 0) - 1;
    if (left > 0) counts.set(network, left);
    else counts.delete(network);
  }

  function close(member: Member): void {
    leave(member);
    member.socket.destroy();
  }

  /** Closes one of a network; null: of any. @returns whether there was one */
  function makeRoom(network: string | null, limit: Limit): boolean {
    const isOwn = (member: Member) => network === null || member.network === network;
    for (const member of idle) {
      if (!isOwn(member)) continue;
      if (member.socket.bytesRead === member.idleBytes) {
        close(member);
        return true;
      }
      setReceiving(member, null);
    }
    for (const [member, request] of receiving) {
      if (!isOwn(member)) continue;
      if (request?.complete === true) {
        setBusy(member);
        continue;
      }
      close(member);
      onRefused(member.address, limit);
      return true;
    }
    return false;
  }

  /** Makes room where there is none. @returns the limit that still refuses the connection; null: none */
  function limitBefore(network: string | null): Limit | null {
    const isCrowded = network !== null && (counts.get(network) ?? 0) >= limits.max_connections_per_address;
    if (isCrowded && !makeRoom(network, 'connections_per_address')) return 'connections_per_address';
    return members.size >= limits.max_connections && !makeRoom(null, 'connections') ? 'connections' : null;
  }

  /** A request on it is being answered: it is not closed for others. */
  function setBusy(member: Member): void {
    idle.delete(member);
    receiving.delete(member);
  }

  /** The body of a request is arriving on it; once that is complete, it is busy. */
  function setReceiving(member: Member, request: Pick<IncomingMessage, 'complete'> | null): void {
    setBusy(member);
    if (members.has(member)) receiving.set(member, request);
  }

  return {
    /** Accepts a connection, or closes it at once: null. @param socket the TCP one, before any handshake */
    admit(socket: Socket): Member | null {
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
      const member: Member = { socket, address, network, idleBytes: 0 };
      members.add(member);
      receiving.set(member, null);
      if (network !== null) counts.set(network, (counts.get(network) ?? 0) + 1);
      socket.once('close', () => leave(member));
      return member;
    },
    /** Every request on it is answered. */
    setIdle(member: Member): void {
      setBusy(member);
      member.idleBytes = member.socket.bytesRead;
      if (members.has(member)) idle.add(member);
    },
    setReceiving,
    setBusy,
    open: () => members.size,
  };
}
