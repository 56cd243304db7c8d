/** A dashboard for Grafana: one panel per question, generated from a table. */

type Panel = readonly [title: string, unit: string, targets: Readonly<Record<string, string>>];

/** Units by Grafana's names; targets: legend to expression. */
const PANELS: readonly Panel[] = [
  ['Open alerts', 'short', { '{{alert}}': 'wirewatch_alerts_open > 0' }],
  [
    'Time since the newest finished window',
    's',
    { '{{export}}': 'time() - wirewatch_newest_done_timestamp_seconds' },
  ],
  [
    'Requests by status',
    'reqps',
    { '{{status}}': 'sum by (status) (rate(wirewatch_http_request_duration_seconds_count[5m]))' },
  ],
  [
    'Request duration',
    's',
    Object.fromEntries(
      [0.5, 0.95, 0.99].map((share) => [
        `p${share * 100}`,
        `histogram_quantile(${share}, sum by (le) (rate(wirewatch_http_request_duration_seconds_bucket[5m])))`,
      ]),
    ),
  ],
  ['Requests refused by limits', 'reqps', { '{{limit}}': 'rate(wirewatch_refused_total[5m])' }],
  ['Connections', 'short', { open: 'wirewatch_connections' }],
  ['Rows ingested', 'cps', { '{{outcome}}': 'sum by (outcome) (rate(wirewatch_rows_ingested_total[15m]))' }],
  ['Files', 'short', { '{{outcome}}': 'sum by (outcome) (increase(wirewatch_files_total[1h]))' }],
  [
    'Windows not read in the last 90 days',
    'short',
    { '{{export}} {{status}}': 'wirewatch_windows{status!="done"}' },
  ],
  ['Rows today by account', 'short', { '{{account}}': 'wirewatch_account_rows_today' }],
  [
    'Time since the last request, by account',
    's',
    { '{{account}}': 'time() - wirewatch_account_last_request_timestamp_seconds' },
  ],
  ['Free disk', 'bytes', { '{{folder}}': 'wirewatch_disk_free_bytes' }],
  ['Database size', 'bytes', { '{{database}}': 'wirewatch_database_bytes' }],
  [
    'Time until the certificate expires',
    's',
    { certificate: 'wirewatch_certificate_expires_timestamp_seconds - time()' },
  ],
  [
    'Age of backup, rehearsal and verification',
    's',
    {
      backup: 'time() - wirewatch_backup_newest_timestamp_seconds',
      rehearsal: 'time() - wirewatch_backup_rehearsed_timestamp_seconds',
      verification: 'time() - wirewatch_verified_timestamp_seconds',
    },
  ],
  ['Processor', 'percentunit', { used: 'rate(process_cpu_seconds_total{job="wirewatch"}[5m])' }],
  ['Memory', 'bytes', { resident: 'process_resident_memory_bytes{job="wirewatch"}' }],
];

/** A variable of the dashboard. */
const DATASOURCE = '$datasource';

/** Of the 24 columns of a row. */
const WIDTH = 12;
const HEIGHT = 8;

export function grafanaDashboard(): string {
  const datasource = { type: 'prometheus', uid: DATASOURCE };
  const dashboard = {
    title: 'Wirewatch',
    uid: 'wirewatch',
    schemaVersion: 39,
    refresh: '1m',
    time: { from: 'now-24h', to: 'now' },
    templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }] },
    panels: PANELS.map(([title, unit, targets], at) => ({
      id: at + 1,
      title,
      type: 'timeseries',
      datasource,
      gridPos: { x: (at % 2) * WIDTH, y: Math.floor(at / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
      fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
      targets: Object.entries(targets).map(([legendFormat, expr], index) => ({
        refId: String.fromCharCode('A'.charCodeAt(0) + index),
        datasource,
        expr,
        legendFormat,
      })),
    })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}
