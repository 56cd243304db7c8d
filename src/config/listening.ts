/** What the addresses to listen on mean together: who reaches them, and whether two are in each other's way. No I/O. */
import { isIPv4, isIPv6 } from 'node:net';
import { NO_PROXY } from './format.ts';
import type { Settings } from './schema.ts';

const ALL = '::';
const ALL_IPV4 = '0.0.0.0';
const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Can whoever is on another machine read keys on their way? A proxy that is trusted is taken to speak TLS. */
export function isInTheClear({ host, tls_certificate, trusted_proxies }: Settings['server']): boolean {
  return !isLoopback(host) && tls_certificate === '' && trusted_proxies.length === 0;
}

/**
 * Whose X-Forwarded-For is believed, where the setting is as given. Where only this machine can connect, others come
 * through a proxy on it: counted by its address, all of them together would be one client.
 */
export function trustedProxies({ host, trusted_proxies }: Settings['server']): string[] {
  if (trusted_proxies.length === 0) return isLoopback(host) ? [...LOOPBACK] : [];
  return trusted_proxies.filter((proxy) => proxy !== NO_PROXY);
}

/** Whether nothing can listen on one host while something listens on the other, on the same port. */
export function isSamePlace(one: string, other: string): boolean {
  const hosts = [one.toLowerCase(), other.toLowerCase()];
  if (hosts[0] === hosts[1] || hosts.includes(ALL)) return true;
  if (hosts.includes(ALL_IPV4)) return hosts.every((host) => !isIPv6(host));
  return hosts.includes('localhost') && hosts.every(isLoopback);
}

/** An address of this machine alone; a name other than localhost could be anything. */
export function isLoopback(host: string): boolean {
  return (isIPv4(host) && host.startsWith('127.')) || ['::1', 'localhost'].includes(host.toLowerCase());
}
