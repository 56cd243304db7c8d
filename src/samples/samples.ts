/** Sample files for the programs around the appliance. `config/` contains the same files; a test keeps both equal. */
import { annotatedConfig } from '../config/annotated.ts';
import { CERTBOT } from './certbot.ts';
import { grafanaDashboard } from './grafana.ts';
import { LOGROTATE } from './logrotate.ts';
import { NGINX } from './nginx.ts';
import { PROMETHEUS } from './prometheus.ts';

export interface Sample {
  /** The file in `config/`. */
  readonly name: string;
  readonly title: string;
  readonly text: () => string;
}

export const SAMPLES: readonly Sample[] = [
  { name: 'wirewatch.toml', title: 'every setting, with its default', text: () => annotatedConfig() },
  { name: 'nginx.conf', title: 'nginx as a proxy in front, with TLS', text: () => NGINX },
  {
    name: 'certbot-hook.sh',
    title: 'installs a renewed certificate for Wirewatch',
    text: () => CERTBOT,
  },
  { name: 'logrotate.conf', title: 'rotates the log file ([log] file)', text: () => LOGROTATE },
  {
    name: 'prometheus-rules.yml',
    title: 'alerting rules for Prometheus, with severities',
    text: () => PROMETHEUS,
  },
  {
    name: 'grafana-dashboard.json',
    title: 'a dashboard for Grafana, with Prometheus as its data source',
    text: grafanaDashboard,
  },
];
