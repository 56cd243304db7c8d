/**
 * What counts as one address where requests are counted by address: an IPv4 address, or an IPv6 network of 64 bits,
 * since a single customer of a provider has at least as much (RFC 6177). Pure.
 */

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** @param address IPv4, or IPv6 in any spelling without a zone; what is no address stands for itself */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  // A dotted part stands for two groups, and lies beyond the network.
  const [head = '', tail] = address.replace(/[\d.]*\.\d+$/, '0:0').split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0');
  const network = [...before, ...zeros, ...after].slice(0, NETWORK_GROUPS);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
