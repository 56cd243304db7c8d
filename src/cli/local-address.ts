/** The address for clients on this machine. */
import type { Config } from '../config/load.ts';
import { dataFolder } from '../store/folder.ts';
import { readRunning } from '../store/noted-address.ts';

/** Where the running appliance listens, else as set; null where neither is known. */
export function localUrl(config: Pick<Config, 'server' | 'dataFolder'>): string | null {
  const running = readRunning(dataFolder(config.dataFolder));
  return (running.kind === 'running' ? running.url : null) ?? listeningUrl(config);
}

/** The listening address by the settings; null where the port is only known to the appliance that picked it. */
export function listeningUrl({ server }: Pick<Config, 'server'>): string | null {
  const { host, port, tls_certificate } = server;
  if (port === 0) return null;
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const scheme = tls_certificate === '' ? 'http' : 'https';
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}
