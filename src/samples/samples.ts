/** Sample files for the programs around Wirewatch, and sample clients: those of `config/`, bundled. */
import certbotHook from '../../config/certbot-hook.sh' with { type: 'text' };
import clientPy from '../../config/client-py' with { type: 'text' };
import clientTs from '../../config/client-ts' with { type: 'text' };
import fluentBit from '../../config/fluent-bit.yml' with { type: 'text' };
import grafanaDashboard from '../../config/grafana-dashboard.json' with { type: 'json' };
import keepalived from '../../config/keepalived.conf' with { type: 'text' };
import logrotate from '../../config/logrotate.conf' with { type: 'text' };
import mailAlert from '../../config/mail-alert' with { type: 'text' };
import nginx from '../../config/nginx.conf' with { type: 'text' };
import nginxStandby from '../../config/nginx-standby.conf' with { type: 'text' };
import prometheusRules from '../../config/prometheus-rules.yml' with { type: 'text' };
import unit from '../../config/wirewatch.service' with { type: 'text' };
import { annotatedConfig } from '../config/annotated.ts';

export interface Sample {
  /** The file in `config/`. */
  readonly name: string;
  readonly title: string;
  readonly text: () => string;
}

export const SAMPLES: readonly Sample[] = [
  { name: 'wirewatch.toml', title: 'every setting, with its default', text: annotatedConfig },
  { name: 'wirewatch.service', title: 'the systemd unit, as setup writes it', text: () => unit },
  { name: 'nginx.conf', title: 'nginx as a proxy in front, with TLS', text: () => nginx },
  {
    name: 'nginx-standby.conf',
    title: 'nginx in front of a writer and its standbys',
    text: () => nginxStandby,
  },
  {
    name: 'keepalived.conf',
    title: 'keepalived for a writer and a standby: moves the address, and promotes',
    text: () => keepalived,
  },
  {
    name: 'certbot-hook.sh',
    title: 'installs a renewed certificate for Wirewatch',
    text: () => certbotHook,
  },
  { name: 'mail-alert', title: 'mails each alert, as [alerts] command', text: () => mailAlert },
  { name: 'logrotate.conf', title: 'rotates the log file ([log] file)', text: () => logrotate },
  { name: 'fluent-bit.yml', title: 'collects the log with Fluent Bit', text: () => fluentBit },
  {
    name: 'prometheus-rules.yml',
    title: 'alerting rules for Prometheus, with severities',
    text: () => prometheusRules,
  },
  {
    name: 'client-ts',
    title: 'a complete client in TypeScript, for Node 24: follows the stream into SQLite',
    text: () => clientTs,
  },
  {
    name: 'client-py',
    title: 'a complete client in Python: follows the stream into SQLite',
    text: () => clientPy,
  },
  {
    name: 'grafana-dashboard.json',
    title: 'a dashboard for Grafana, with Prometheus as its data source',
    text: () => `${JSON.stringify(grafanaDashboard, null, 2)}\n`,
  },
];
