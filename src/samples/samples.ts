/** Sample files for what runs around the appliance. The same files are in `config/`, and a test holds both together. */
import { annotatedConfig } from '../config/annotated.ts';
import { CERTBOT } from './certbot.ts';
import { grafanaDashboard } from './grafana.ts';
import { LOGROTATE } from './logrotate.ts';
import { NGINX } from './nginx.ts';
import { PROMETHEUS } from './prometheus.ts';

export interface Sample {
  /** Of the file in `config/`. */
  readonly name: string;
  readonly title: string;
  readonly text: () => string;
}

export const SAMPLES: readonly Sample[] = [
  { name: 'wirewatch.toml', title: 'every setting, with its default', text: () => annotatedConfig() },
  { name: 'nginx.conf', title: 'nginx in front, with TLS', text: () => NGINX },
  {
    name: 'certbot-hook.sh',
    title: 'hands a renewed certificate to the appliance',
    text: () => CERTBOT,
  },
  { name: 'logrotate.conf', title: 'rotates the file of [log] file', text: () => LOGROTATE },
  { name: 'prometheus-rules.yml', title: 'alerts of Prometheus, with severities', text: () => PROMETHEUS },
  {
    name: 'grafana-dashboard.json',
    title: 'a dashboard for Grafana, with Prometheus as its source',
    text: grafanaDashboard,
  },
];
