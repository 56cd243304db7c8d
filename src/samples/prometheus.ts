/** Alerting rules for Prometheus, by severity: page for now, warning for the next working day, info for later. */
export const PROMETHEUS = `# Alerting rules for Prometheus: name this file in rule_files. The job must be called wirewatch:
#   scrape_configs: [{ job_name: wirewatch, static_configs: [{ targets: ["127.0.0.1:9464"] }] }]
# Severities: page needs attention now, warning needs attention soon, info is good to know.
# Wirewatch has its own alerts for certificates, backups, verification, windows and disks ("wirewatch manual alerts").
groups:
  - name: wirewatch
    rules:
      - alert: WirewatchDown
        expr: up{job="wirewatch"} == 0
        for: 2m
        labels: { severity: page }
        annotations: { summary: "Wirewatch on {{ $labels.instance }} does not answer" }
      - alert: WirewatchUrgentAlert
        expr: wirewatch_alerts_open{page_worthy="true"} > 0
        labels: { severity: page }
        annotations: { summary: '{{ $labels.alert }}: see "wirewatch alert list"' }
      - alert: WirewatchAlert
        expr: wirewatch_alerts_open{page_worthy="false"} > 0
        for: 1h
        labels: { severity: warning }
        annotations: { summary: '{{ $labels.alert }}: see "wirewatch alert list"' }
      - alert: WirewatchFails
        expr: sum by (instance) (rate(wirewatch_http_request_duration_seconds_count{status="5xx",endpoint!="/v1/health"}[5m])) > 0
        for: 5m
        labels: { severity: page }
        annotations: { summary: "Wirewatch answers requests with 5xx: see its log" }
      - alert: WirewatchIsBehind
        expr: (time() - wirewatch_newest_done_timestamp_seconds > 3600) unless on (instance) (wirewatch_ingest_paused == 1)
        labels: { severity: warning }
        annotations: { summary: "{{ $labels.export }}: no window has been finished for an hour" }
      - alert: WirewatchIsSlow
        expr: histogram_quantile(0.99, sum by (instance, le) (rate(wirewatch_http_request_duration_seconds_bucket[5m]))) > 1
        for: 10m
        labels: { severity: warning }
        annotations: { summary: "1% of the requests take longer than a second" }
      - alert: WirewatchDiskFillsUp
        expr: predict_linear(wirewatch_disk_free_bytes[6h], 4 * 86400) < 0
        for: 1h
        labels: { severity: warning }
        annotations: { summary: "The disk of the {{ $labels.folder }} folder will be full within four days" }
      - alert: WirewatchCertificateExpires
        expr: wirewatch_certificate_expires_timestamp_seconds - time() < 7 * 86400
        labels: { severity: page }
        annotations: { summary: "The TLS certificate expires within a week" }
      - alert: WirewatchClientSilent
        expr: time() - wirewatch_account_last_request_timestamp_seconds > 86400
        labels: { severity: info }
        annotations: { summary: "Account {{ $labels.account }} has sent no request for a day" }
`;
