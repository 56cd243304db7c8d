/** The address for clients on this machine, as far as the settings tell. */
import type { Config } from '../config/load.ts';

/** The listening address; null where the port is only known to the appliance that picked it. */
export function listeningUrl({ server }: Pick<Config, 'server'>): string | null {
  const { host, port, tls_certificate } = server;
  if (port === 0) return null;
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const scheme = tls_certificate === '' ? 'http' : 'https';
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}
