/**
 * IP addresses: the normal form, lists of addresses and networks, and what counts as one client. No I/O.
 *
 * An IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) is that IPv4 address: a socket that listens on `::` reports
 * `10.0.0.1` as `::ffff:10.0.0.1`, and the same rules must apply to both.
 */
import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net';

const MAPPED = '::ffff:';
/** Bits of a mapped address before its IPv4 address. */
const MAPPED_PREFIX = 96;

/** The normal form of an address, without its zone (`%eth0`); null if the text is not an address. */
export function normalAddress(text: string): string | null {
  const plain = text.split('%', 1)[0] ?? '';
  const version = isIP(plain);
  if (version === 4) return plain;
  if (version === 0) return null;
  const { address } = new SocketAddress({ address: plain, family: 'ipv6' });
  const mapped = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : '';
  return isIPv4(mapped) ? mapped : address;
}

/** Whether the text is an address, or a network in CIDR notation; without a zone. */
export const isAddressOrNetwork = (text: string): boolean => parseNetwork(text) !== null;

/** @returns whether an address is in a list of addresses and networks, such as `['10.0.0.0/8', '::1']` */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  // A wide IPv6 network, such as ::/0, must not contain IPv4 addresses: a BlockList would match both.
  const [ipv4, ipv6] = [new BlockList(), new BlockList()];
  for (const entry of list) {
    const network = parseNetwork(entry);
    if (network === null) continue;
    const { address, prefix, family } = network;
    const isMapped = prefix >= MAPPED_PREFIX && isIPv4(normalAddress(address) ?? '');
    (family === 'ipv4' || isMapped ? ipv4 : ipv6).addSubnet(address, prefix, family);
  }
  return (text) => {
    const address = normalAddress(text);
    if (address === null) return false;
    return isIPv4(address) ? ipv4.check(address, 'ipv4') : ipv6.check(address, 'ipv6');
  };
}

/**
 * What counts as one client in limits by address: an IPv4 address, or an IPv6 network of 64 bits, because a customer
 * of a provider gets at least as much (RFC 6177).
 * @param address in the normal form; any other text is returned as it is
 */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail = ''] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === '' ? [] : tail.split(':');
  // An IPv4 address at the end is two of the eight groups.
  const groups = before.length + after.length + (after.at(-1)?.includes('.') === true ? 1 : 0);
  const zeros = Array<string>(Math.max(0, 8 - groups)).fill('0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
}

function parseNetwork(text: string) {
  const [address = '', length, ...more] = text.split('/');
  const version = address.includes('%') ? 0 : isIP(address);
  if (version === 0 || more.length > 0) return null;
  const bits = version === 4 ? 32 : 128;
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  const prefix = length === undefined ? bits : Number(length);
  return prefix > bits ? null : ({ address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' } as const);
}
