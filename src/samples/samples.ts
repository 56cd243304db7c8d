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

export const SAMPLES: readonly Sample[] = (
  [
    ['wirewatch.toml', 'every setting, with its default', annotatedConfig],
    ['wirewatch.service', 'the systemd unit, as setup writes it', () => unit],
    ['nginx.conf', 'nginx as a proxy in front, with TLS', () => nginx],
    ['nginx-standby.conf', 'nginx in front of a writer and its standbys', () => nginxStandby],
    [
      'keepalived.conf',
      'keepalived for a writer and a standby: moves the address, and promotes',
      () => keepalived,
    ],
    ['certbot-hook.sh', 'installs a renewed certificate for Wirewatch', () => certbotHook],
    ['mail-alert', 'mails each alert, as [alerts] command', () => mailAlert],
    ['logrotate.conf', 'rotates the log file ([log] file)', () => logrotate],
    ['fluent-bit.yml', 'collects the log with Fluent Bit', () => fluentBit],
    ['prometheus-rules.yml', 'alerting rules for Prometheus, with severities', () => prometheusRules],
    [
      'client-ts',
      'a complete client in TypeScript, for Node 24: follows the stream into SQLite',
      () => clientTs,
    ],
    ['client-py', 'a complete client in Python: follows the stream into SQLite', () => clientPy],
    [
      'grafana-dashboard.json',
      'a dashboard for Grafana, with Prometheus as its data source',
      () => `${JSON.stringify(grafanaDashboard, null, 2)}\n`,
    ],
  ] as const
).map(([name, title, text]) => ({ name, title, text }));
