/**
 * The address of the client: the peer of the connection, or, behind trusted proxies, the one that they report in
 * X-Forwarded-For. That is read from its right, where they write: what is further left is the client's own claim.
 */
import { createAddressList, normalAddress } from '../addresses.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { Logger } from '../logger.ts';

/** Address of a client. @param peer the socket's; @param forwarded the header's value */
export type ClientAddress = (peer: string | undefined, forwarded: string | undefined) => string;

const UNKNOWN = '0.0.0.0';

/**
 * @param trusted addresses and networks in CIDR notation
 * @param onUntrusted called when a peer that is not trusted sends the header: a client that makes it up, or a proxy
 *   that is missing in the setting
 */
export function createClientAddress(
  trusted: readonly string[],
  onUntrusted: (peer: string) => void = () => {},
): ClientAddress {
  const isTrusted = createAddressList(trusted);
  return (peer, forwarded) => {
    let client = normalAddress(peer ?? UNKNOWN) ?? UNKNOWN;
    if (forwarded === undefined) return client;
    if (!isTrusted(client)) onUntrusted(client);
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

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const [, bracketed, quad] = /^\[([^\]]*)\](?::\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text) ?? [];
  return bracketed ?? quad ?? text;
}

/** Networks of proxies, never of clients on the internet (RFC 1918, 4193, 3927, 4291, 6598). */
const INTERNAL = [
  ...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['::1', 'fc00::/7', 'fe80::/10'],
];

/**
 * Warns the operator, once, of an X-Forwarded-For that is ignored: behind a proxy that is not trusted all clients count
 * as one, and one of them can use up the limits of all. @returns a function to call for each such peer
 */
export function createProxyWarning(conditions: Pick<Conditions, 'set'>, log: Logger): (peer: string) => void {
  const isInternal = createAddressList(INTERNAL);
  const warned = new Set<boolean>();
  return (peer) => {
    const internal = isInternal(peer);
    if (warned.has(true) || warned.has(internal)) return;
    warned.add(internal);
    if (internal)
      conditions.set('proxy not trusted', `${peer} sent X-Forwarded-For, but is not a trusted proxy`);
    // Anybody can send the header from outside: a line in the log, no alert.
    else log.warn({ address: peer }, 'ignored X-Forwarded-For from an address that is not a trusted proxy');
  };
}
