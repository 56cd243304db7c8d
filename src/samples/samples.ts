/** Sample files for the programs around Wirewatch, and sample clients: those of `config/`, bundled. */
import { packedText } from '../packed.ts';

/** Names and titles, in the order of the list. */
export const SAMPLES = Object.entries({
  'wirewatch.toml': 'every setting, with its default',
  'wirewatch.service': 'the systemd unit, as setup writes it',
  'nginx.conf': 'nginx as a proxy in front, with TLS',
  'nginx-standby.conf': 'nginx in front of a writer and its standbys',
  'keepalived.conf': 'keepalived for a writer and a standby: moves the address, and promotes',
  'certbot-hook.sh': 'installs a renewed certificate for Wirewatch',
  'mail-alert': 'mails each alert, as [alerts] command',
  'logrotate.conf': 'rotates the log file ([log] file)',
  'fluent-bit.yml': 'collects the log with Fluent Bit',
  'prometheus-rules.yml': 'alerting rules for Prometheus, with severities',
  'client-ts': 'a complete client in TypeScript, for Node 24: follows the stream into SQLite',
  'client-py': 'a complete client in Python: follows the stream into SQLite',
  'grafana-dashboard.json': 'a dashboard for Grafana, with Prometheus as its data source',
}).map(([name, title]) => ({ name, title }));

/** @param name of a file in `config/` */
export function sampleText(name: string): string {
  return packedText('config', name);
}
