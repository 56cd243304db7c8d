/**
 * Lists of addresses and networks, and whether an address is in one. Pure.
 *
 * Everything is compared as 128 bits, an IPv4 address as the IPv6 address it is mapped to (RFC 4291, 2.5.5.2): a
 * socket that listens on `::` reports `10.0.0.1` as `::ffff:10.0.0.1`, and both must meet the same rule.
 */
import { isIP } from 'node:net';

const BITS = 128;
/** An IPv4 address within the 128 bits: `::ffff:0:0/96`. */
const MAPPED_PREFIX = 96;
const MAPPED_BASE = 0xffffn << 32n;

interface Network {
  readonly bits: bigint;
  readonly prefix: number;
}

/** Whether an address is one of those, or lies in one of the networks. @param list e.g. `['10.0.0.0/8', '::1']` */
export function isAddressListed(list: readonly string[], address: string): boolean {
  return createAddressList(list)(address);
}

/** As {@link isAddressListed}, with the list read once for many addresses. */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  const networks = list.map(networkOf).filter((network) => network !== null);
  return (address) => {
    const bits = addressBits(address);
    return bits !== null && networks.some((network) => isWithin(network, bits));
  };
}

function isWithin(network: Network, bits: bigint): boolean {
  // A wide IPv6 network, `::/0` for one, does not take in the IPv4 addresses.
  if (network.prefix < MAPPED_PREFIX && bits >> 32n === MAPPED_BASE >> 32n) return false;
  const rest = BigInt(BITS - network.prefix);
  return network.bits >> rest === bits >> rest;
}

function networkOf(text: string): Network | null {
  const [address = '', length, ...more] = text.split('/');
  const bits = addressBits(address);
  if (bits === null || more.length > 0) return null;
  if (length === undefined) return { bits, prefix: BITS };
  if (!/^(0|[1-9]\d{0,2})$/.test(length)) return null;
  const prefix = Number(length) + (isIP(address) === 4 ? MAPPED_PREFIX : 0);
  return prefix <= BITS ? { bits, prefix } : null;
}

/** The 128 bits of an address; a zone (`%eth0`) is left out. Null when it is no address. */
function addressBits(address: string): bigint | null {
  const plain = address.split('%', 1)[0] ?? '';
  const version = isIP(plain);
  if (version === 0) return null;
  if (version === 4) return MAPPED_BASE | quadBits(plain);
  const colon = plain.lastIndexOf(':');
  const last = plain.slice(colon + 1);
  if (!last.includes('.')) return groupBits(plain);
  return groupBits(`${plain.slice(0, colon + 1)}0:0`) | quadBits(last);
}

function quadBits(quad: string): bigint {
  return quad.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

/** The bits of an IPv6 address that is known to be well formed and has no dotted part. */
function groupBits(address: string): bigint {
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}
