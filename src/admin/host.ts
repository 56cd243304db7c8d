/**
 * Which Host headers the administration answers to. A web page from elsewhere can have its own name resolve to this
 * machine (DNS rebinding) and would then read what is served here, with the browser of somebody who can reach it. Such
 * a name is one of the public DNS; so only addresses are taken, and names that the public DNS cannot have. Pure.
 */
import { isIP } from 'node:net';

/** Reserved for use within a network (RFC 6761, RFC 6762, RFC 8375; ICANN for `internal`). */
const PRIVATE_NAME = /(^[^.]+|\.(localhost|local|internal|home\.arpa))$/;

/**
 * @param host the header; @param ownNames further names that the operator gave this machine
 */
export function isHostTaken(host: string | undefined, ownNames: readonly string[]): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d{1,5})?$/.exec(host ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = (plain ?? '').toLowerCase().replace(/\.$/, '');
  if (!/^[a-z0-9._-]+$/.test(name)) return false;
  // What ends in a number is read as an address by browsers, `1.2` and `0x7f.1` too.
  if (/(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)) return isIP(name) === 4;
  return PRIVATE_NAME.test(name) || ownNames.some((own) => own.toLowerCase() === name);
}
