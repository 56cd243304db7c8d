/**
 * The address of the client: the peer of the connection, or, behind proxies that the operator trusts, the one that
 * those report in X-Forwarded-For.
 *
 * The header is read from its right, where the trusted proxies write; what stands further left is the client's own
 * claim, and believing it would let anybody choose an address.
 */
import { isIP, SocketAddress } from 'node:net';
import { createAddressList } from '../auth/addresses.ts';

/** Address of a client. @param peer the socket's; @param forwarded the header's value */
export type ClientAddress = (peer: string | undefined, forwarded: string | undefined) => string;

const UNKNOWN = '0.0.0.0';
const MAPPED = '::ffff:';

/** @param trusted addresses and networks in CIDR notation */
export function createClientAddress(trusted: readonly string[]): ClientAddress {
  const isTrusted = createAddressList(trusted);
  return (peer, forwarded) => {
    let client = normalAddress(peer ?? UNKNOWN) ?? UNKNOWN;
    if (forwarded === undefined || trusted.length === 0) return client;
    const hops = forwarded.split(',');
    while (isTrusted(client)) {
      const hop = hops.pop();
      const address = hop === undefined ? null : normalAddress(withoutPort(hop.trim()));
      if (address === null) return client;
      client = address;
    }
    return client;
  };
}

/** An address in its one spelling, an IPv4 address mapped into IPv6 as IPv4; null when it is none. */
function normalAddress(text: string): string | null {
  const plain = text.split('%', 1)[0] ?? '';
  const version = isIP(plain);
  if (version === 4) return plain;
  if (version === 0) return null;
  const { address } = new SocketAddress({ address: plain, family: 'ipv6' });
  const mapped = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : '';
  return isIP(mapped) === 4 ? mapped : address;
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? [];
  if (bracketed !== undefined) return bracketed;
  const [, quad] = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text) ?? [];
  return quad ?? text;
}
