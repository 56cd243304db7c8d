/** `wirewatch sample`: files for the programs around Wirewatch, and sample clients: those of `config/`, bundled. */
import { choice } from '../operations/member.ts';
import { packedText } from '../packed.ts';
import { documentTable } from '../text-layout.ts';
import { defineCommand } from './command.ts';

/** In the order of the list. */
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
}).map(([file, title]) => ({ file, title }));

export const register = defineCommand({
  members: { file: choice(SAMPLES.map(({ file }) => file)) },
  operands: ['file'],
  examples: [
    'sample',
    'sample nginx.conf > /etc/nginx/conf.d/wirewatch.conf',
    'sample grafana-dashboard.json > dashboard.json',
  ],
  run({ file }) {
    if (file === undefined)
      return { value: SAMPLES, text: `${documentTable(SAMPLES)}\n\nTo print one: wirewatch sample FILE` };
    const text = packedText('config', file);
    return { value: { file, text }, text };
  },
});
