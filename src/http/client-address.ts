/** The address of the client: the peer, or what trusted proxies report at the right end of X-Forwarded-For. */
import { createAddressList, normalAddress } from '../addresses.ts';
import type { Conditions } from '../health/alert-conditions.ts';

const UNKNOWN = '0.0.0.0';

/** @param trusted addresses and CIDR networks; @param onUntrusted called when another peer sends the header */
export function createClientAddress(trusted: readonly string[], onUntrusted: (peer: string) => void) {
  const isTrusted = createAddressList(trusted);
  /** Address of a client. @param peer the socket's; @param forwarded the header's value */
  return (peer: string | undefined, forwarded: string | undefined): string => {
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

/** Opens an alert, once, for an X-Forwarded-For that is ignored: behind such a proxy all clients count as one. */
export function createProxyWarning(conditions: Pick<Conditions, 'set'>): (peer: string) => void {
  const isInternal = createAddressList(INTERNAL);
  let hasWarned = false;
  return (peer) => {
    if (hasWarned || !isInternal(peer)) return;
    hasWarned = true;
    conditions.set('proxy not trusted', `${peer} sent X-Forwarded-For, but is not a trusted proxy`);
  };
}
