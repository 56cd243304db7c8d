/**
 * What counts as one address where requests are counted by address: an IPv4 address, or an IPv6 network of 64 bits,
 * since a single customer of a provider has at least as much (RFC 6177). Pure.
 */

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** @param address in its one spelling; what is no address stands for itself */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // An IPv4 address at the end stands for two groups.
  const last = after.at(-1)?.includes('.') === true ? 1 : 0;
  const zeros = Array<string>(Math.max(0, GROUPS - before.length - after.length - last)).fill('0');
  return `${[...before, ...zeros, ...after].slice(0, NETWORK_GROUPS).join(':')}::/64`;
}
