/**
 * Addresses in their one spelling, and lists of addresses and networks. Pure.
 *
 * An IPv4 address that is mapped into IPv6 (RFC 4291, 2.5.5.2) is that IPv4 address: a socket that listens on `::`
 * reports `10.0.0.1` as `::ffff:10.0.0.1`, and both must meet the same rule. Each family has a list of its own: a wide
 * IPv6 network, `::/0` for one, does not take in the IPv4 addresses.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';

const MAPPED = '::ffff:';
/** Where the IPv4 address begins within a mapped one. */
const MAPPED_PREFIX = 96;

/** An address in its one spelling, without its zone (`%eth0`); null when it is none. */
export function normalAddress(text: string): string | null {
  const plain = text.split('%', 1)[0] ?? '';
  const version = isIP(plain);
  if (version === 4) return plain;
  if (version === 0) return null;
  const { address } = new SocketAddress({ address: plain, family: 'ipv6' });
  const mapped = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : '';
  return isIP(mapped) === 4 ? mapped : address;
}

/** Whether an address is one of those, or lies in one of the networks. @param list e.g. `['10.0.0.0/8', '::1']` */
export function isAddressListed(list: readonly string[], address: string): boolean {
  return createAddressList(list)(address);
}

/** As {@link isAddressListed}, with the list read once for many addresses. */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  const networks = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const entry of list) {
    const network = networkOf(entry);
    if (network !== null) networks[network.family].addSubnet(network.address, network.prefix, network.family);
  }
  return (text) => {
    const address = normalAddress(text);
    if (address === null) return false;
    const family = familyOf(address);
    return networks[family].check(address, family);
  };
}

type Family = 'ipv4' | 'ipv6';

function networkOf(entry: string): { address: string; prefix: number; family: Family } | null {
  const [given = '', length, ...more] = entry.split('/');
  const address = normalAddress(given);
  if (address === null || more.length > 0) return null;
  const bits = isIP(given) === 4 ? 32 : 128;
  const prefix = length === undefined ? bits : /^(0|[1-9]\d{0,2})$/.test(length) ? Number(length) : bits + 1;
  if (prefix > bits) return null;
  const isMapped = bits === 128 && familyOf(address) === 'ipv4';
  if (!isMapped) return { address, prefix, family: familyOf(address) };
  if (prefix >= MAPPED_PREFIX) return { address, prefix: prefix - MAPPED_PREFIX, family: 'ipv4' };
  return { address: `${MAPPED}${address}`, prefix, family: 'ipv6' };
}

function familyOf(address: string): Family {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}
