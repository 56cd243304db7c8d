/**
 * The address of the client: the peer of the connection, or, behind trusted proxies, the one that they report in
 * X-Forwarded-For.
 *
 * The header is read from its right, where trusted proxies write. What is further left is the client's own claim:
 * believing it would let a client choose its address.
 */
import { createAddressList, normalAddress } from '../auth/addresses.ts';

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
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? [];
  if (bracketed !== undefined) return bracketed;
  const [, quad] = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text) ?? [];
  return quad ?? text;
}
