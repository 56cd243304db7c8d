/**
 * Tells the operator, once, of an X-Forwarded-For that is not believed: behind a proxy that is not trusted all clients
 * count as one, and one of them can use up the limits of all.
 */
import { createAddressList } from '../addresses.ts';
import type { Conditions } from '../health/alert-conditions.ts';
import type { Logger } from '../log.ts';

/** Networks from which proxies come, and no client on the internet (RFC 1918, 4193, 3927, 4291, 6598). */
const INTERNAL = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '::1',
  'fc00::/7',
  'fe80::/10',
];

/** @returns what is told of each peer that sends the header and is not trusted */
export function createProxyWarning({
  conditions,
  log,
}: {
  readonly conditions: Pick<Conditions, 'set'>;
  readonly log: Logger;
}): (peer: string) => void {
  const isInternal = createAddressList(INTERNAL);
  const told = { internal: false, external: false };
  return (peer) => {
    if (told.internal) return;
    if (isInternal(peer)) {
      told.internal = true;
      conditions.set('proxy not trusted', `${peer} sent X-Forwarded-For, but is not a trusted proxy`);
    } else if (!told.external) {
      // Anybody can send the header from outside: that is worth a line in the log, and no alert.
      told.external = true;
      log.warn({ address: peer }, 'ignored X-Forwarded-For from an address that is not a trusted proxy');
    }
  };
}
