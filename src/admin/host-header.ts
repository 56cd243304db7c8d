/**
 * Which Host headers the administration answers to. A web page from elsewhere can have its own name resolve to this
 * machine (DNS rebinding) and would then read what is served here, with the browser of somebody who can reach it. Such
 * a name is one of the public DNS; so only addresses are taken, and names that the public DNS cannot have. Pure.
 */
import { isIP } from 'node:net';

/**
 * Reserved for use within a network (RFC 6761, RFC 8375; ICANN for `internal`). Not `local`, which is asked of everybody
 * on the network (RFC 6762): any of them could have a name of theirs lead here.
 */
const PRIVATE_NAME = /(^[^.]+|\.(localhost|internal|home\.arpa))$/;
/** Names of services in Kubernetes, which its own DNS answers. */
const CLUSTER_NAMES = '.svc.cluster.local';

/** The names that this machine has, and that the operator gave it. An ending begins with a dot. */
export function ownNames(host: string, machine: string, env: NodeJS.ProcessEnv): string[] {
  const inCluster = env.KUBERNETES_SERVICE_HOST !== undefined;
  return [host, machine, `${machine}.local`, ...(inCluster ? [CLUSTER_NAMES] : [])];
}

/**
 * The names in a certificate: who asks by one of them over TLS has been shown it, and a foreign name that leads here has
 * no such certificate. An ending begins with a dot.
 *
 * @param altNames of X509Certificate.subjectAltName
 */
export function certificateNames(altNames: string | undefined): string[] {
  const entries = (altNames ?? '').split(', ').filter((entry) => entry.startsWith('DNS:'));
  return entries.map((entry) => entry.slice('DNS:'.length).replace(/^\*\./, '.'));
}

/**
 * @param host the header; @param own of {@link ownNames}
 */
export function isHostTaken(host: string | undefined, own: readonly string[]): boolean {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d{1,5})?$/.exec(host ?? '') ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = (plain ?? '').toLowerCase().replace(/\.$/, '');
  if (!/^[a-z0-9._-]+$/.test(name)) return false;
  // What ends in a number is read as an address by browsers, `1.2` and `0x7f.1` too.
  if (/(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)) return isIP(name) === 4;
  return (
    PRIVATE_NAME.test(name) ||
    own.some((one) => (one.startsWith('.') ? name.endsWith(one) : one.toLowerCase() === name))
  );
}
