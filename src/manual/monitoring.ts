/** Manual, topic `monitoring`: the administration's pages, every metric, and where rules are. */
import { fenced, page, paragraph, points, wrapped } from './text.ts';

/** Every metric of the appliance's own, by its name. */
export const METRICS: readonly (readonly [name: string, labels: string, what: string])[] = [
  [
    'wirewatch_http_request_duration_seconds',
    'endpoint, status',
    'Histogram of the requests to the API, and of the time from the head of a request until its answer was handed over. endpoint is the path as in the OpenAPI document, "none" where there is none; status is 2xx, 3xx, 4xx or 5xx. Its _count is the number of requests.',
  ],
  ['wirewatch_rows_served_total', 'endpoint', 'Detections in answers.'],
  ['wirewatch_tokens_issued_total', '', 'Access tokens that were given out.'],
  [
    'wirewatch_refused_total',
    'limit',
    'What a limit kept out: requests (a key in a minute), token_requests, unseen_key_ids, daily_rows, connections, connections_per_address.',
  ],
  [
    'wirewatch_connections',
    '',
    'Connections to the API that are open. The limit is [server] max_connections.',
  ],
  [
    'wirewatch_files_total',
    'export, outcome',
    'Dropped files by what became of them: applied, repeated, failed, refused, held. export is "none" where the name says none.',
  ],
  [
    'wirewatch_rows_ingested_total',
    'export, outcome',
    'Rows of those files: created and updated (new versions), rescored and unchanged (none), left_out (of streams that are not there, or bad). Replays are not counted.',
  ],
  [
    'wirewatch_newest_done_timestamp_seconds',
    'export',
    'End of the newest finished window, from which as_of is made. Not there until a window has finished.',
  ],
  ['wirewatch_windows', 'export, status', 'Windows of the last 90 days: done, failed, missing, abandoned.'],
  ['wirewatch_healthy', '', '1 while GET /v1/health answers 200, else 0.'],
  ['wirewatch_ingest_paused', '', '1 during a pause, else 0.'],
  [
    'wirewatch_alerts_open',
    'alert, page_worthy',
    'Open alerts, by the names of the topic alerts; page_worthy is "true" for those that need someone now.',
  ],
  ['wirewatch_database_bytes', 'database', 'Size of detections.db and of access.db.'],
  [
    'wirewatch_wal_bytes',
    'database',
    'Size of their write-ahead logs. One that grows without end means that a backup or a tool holds the database open.',
  ],
  [
    'wirewatch_verified_timestamp_seconds',
    '',
    'When detections.db was last compared with its log, by itself ([verify] every_hours) or by "wirewatch verify". Not there until it was.',
  ],
  [
    'wirewatch_verify_findings',
    'kind',
    'What was found then: log damaged, database malformed, row missing, row too many, row differs, index disagrees.',
  ],
  [
    'wirewatch_backup_newest_timestamp_seconds',
    '',
    'When the backup folder was last brought up to date. Not there while there is none, or none is scheduled ([backup] every_minutes).',
  ],
  [
    'wirewatch_backup_rehearsed_timestamp_seconds',
    '',
    'When a restore from the newest branch of the backup folder was last rehearsed without a finding. Not there until it was, or when none is scheduled.',
  ],
  [
    'wirewatch_disk_free_bytes',
    'folder',
    'Room that is left for the appliance on the disk of the folder: data, drop, and backup where one is scheduled.',
  ],
  [
    'wirewatch_certificate_expires_timestamp_seconds',
    '',
    'When the TLS certificate in use expires. Not there without TLS.',
  ],
  [
    'wirewatch_account_rows_today',
    'account',
    'Rows that the account has read on this UTC day, which its daily allowance counts. 0 again at 00:00 UTC.',
  ],
  [
    'wirewatch_account_last_request_timestamp_seconds',
    'account',
    'When a key of the account was last used. Not there until one was.',
  ],
  [
    'wirewatch_follower_lag_seconds',
    'account, key_id',
    'How much older than the newest change of all streams the cursor is that the key was given last: 0 for a follower that has read to the end. It grows while a follower is silent and changes come. Not there for a key that never read the change stream. After the end of the log was lost it is a year once, until the follower has read on.',
  ],
  ['wirewatch_build_info', 'version, commit', 'Always 1.'],
];

const SCRAPE_CONFIG = `
scrape_configs:
  - job_name: wirewatch
    static_configs:
      - targets: ["127.0.0.1:9464"]
`;

export function monitoringText(): string {
  return page(
    'MONITORING',
    paragraph(`
      To be told when somebody is needed, let a monitor ask GET /v1/health, which is always there ("wirewatch manual
      alerts"). To see more, turn the administration on: it has metrics, a page that shows how things stand, and this
      manual for a browser.`),
    fenced('toml', '[admin]\nport = 9464'),
    'The administration',
    points(
      'It listens on a port of its own, [admin] port, and only there; 0, the default, leaves it off. Its address, http://127.0.0.1:9464 for example, stands in the log: "administration listening".',
      '/status: how up to date each export is, the windows of the last day, the open alerts with what to do, the rows of each minute of the last hour. /manual: the manual. /metrics: for Prometheus. /openapi.json: what "wirewatch openapi" prints.',
      'It answers GET and HEAD, and changes nothing. It needs no key and shows no secret, but it shows paths, names of files and figures: whoever reaches it can read it. It stays on this machine unless [admin] host says otherwise, which the log warns of; a firewall or a proxy has to guard it then.',
      'It answers only to addresses, to names without a dot or of a private domain (internal, home.arpa), to the name of this machine, also with .local, to the one in [admin] host, and in Kubernetes to names of services; any other gets 421. So a web page from elsewhere cannot read it by way of your browser.',
      'It shares no limits with the API: at most 50 connections, none for longer than it is used.',
    ),
    'Prometheus',
    fenced('yaml', SCRAPE_CONFIG),
    'Metrics',
    paragraph('Counters start at 0 with the appliance.'),
    METRICS.map(metric).join('\n'),
    paragraph(`
      Besides these there are the usual ones of a process: process_cpu_seconds_total, process_resident_memory_bytes,
      process_open_fds (on Linux), process_start_time_seconds; and of the thread that answers requests
      nodejs_heap_size_used_bytes.`),
    'Rules and a dashboard to begin with',
    paragraph(`
      "wirewatch sample prometheus-rules.yml" prints rules for Prometheus, each with a severity: page needs someone
      now, warning soon, info is worth knowing. "wirewatch sample grafana-dashboard.json" prints a dashboard to import
      into Grafana. Change names and times to your liking.`),
  );
}

function metric([name, labels, what]: (typeof METRICS)[number]): string {
  const head = labels === '' ? name : `${name} {${labels}}`;
  return `${head}\n${wrapped(what, '    ')}`;
}
