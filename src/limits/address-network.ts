/**
 * What counts as one address where requests are counted by address: an IPv4 address, or an IPv6 network of 64 bits,
 * since a single customer of a provider has at least as much (RFC 6177). Pure.
 */

const GROUPS = 8;
const NETWORK_GROUPS = 4;
/** Of an IPv4 address mapped into IPv6 (RFC 4291, 2.5.5.2). */
const MAPPED_GROUPS = '0:0:0:0:0:ffff';

/** @param address IPv4, or IPv6 in any spelling without a zone; what is no address stands for itself */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const [, dotted] = /:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  const groups = groupsOf(dotted === undefined ? address : address.replace(dotted, hexGroups(dotted)));
  const isMapped = groups.slice(0, -2).join(':') === MAPPED_GROUPS;
  return isMapped ? quadOf(groups.slice(-2)) : `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`;
}

/** The eight groups of an IPv6 address, each in its one spelling. */
function groupsOf(address: string): string[] {
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16).toString(16));
}

/** `203.0.113.5` as `cb00:7105`. */
function hexGroups(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

function quadOf(groups: readonly string[]): string {
  const bytes = groups.map((group) => Number.parseInt(group, 16)).flatMap((pair) => [pair >> 8, pair & 255]);
  return bytes.join('.');
}
