/** The addresses to listen on: who can reach them, and whether two of them conflict. No I/O. */
import { isIPv4 } from 'node:net';
import { NO_PROXY } from './option-values.ts';
import type { Settings } from './schema.ts';

const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Whether keys cross the network unencrypted. A trusted proxy is assumed to use TLS. */
export const isInTheClear = ({ host, tls_certificate, trusted_proxies }: Settings['server']): boolean =>
  !isLoopback(host) && tls_certificate === '' && trusted_proxies.length === 0;

/**
 * The proxies whose X-Forwarded-For is trusted. If only this machine can connect, other clients come through a proxy on
 * it: counted by its address, they would all be one client.
 */
export function trustedProxies({ host, trusted_proxies }: Settings['server']): string[] {
  if (trusted_proxies.length === 0) return isLoopback(host) ? [...LOOPBACK] : [];
  return trusted_proxies.filter((proxy) => proxy !== NO_PROXY);
}

/** Whether only this machine can reach it; a name other than localhost could be any address. */
export const isLoopback = (host: string): boolean =>
  (isIPv4(host) && host.startsWith('127.')) || ['::1', 'localhost'].includes(host.toLowerCase());

/** How this machine reaches itself on a host that means all of its addresses. */
const OF_ALL = new Map(Object.entries({ '0.0.0.0': '127.0.0.1', '::': '::1' }));

/** The configured listening address; null for port 0, which is known only while Wirewatch runs. */
export const listeningUrl = ({ host, port, tls_certificate }: Settings['server']): string | null =>
  port === 0 ? null : reachableUrl(tls_certificate === '' ? 'http' : 'https', host, port);

/** The URL of an address to listen on; of a wildcard, loopback; an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function reachableUrl(scheme: 'http' | 'https', host: string, port: number): string {
  const reached = OF_ALL.get(host) ?? host;
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}

export const OTHER_ADDRESS = 'Choose another address or port with --host and --port.';
