/**
 * The metrics: counters of events, and gauges that are read for each answer. Nothing else uses prom-client. The manual's
 * topic `monitoring` lists them, which a test compares.
 *
 * https://prometheus.io/docs/practices/naming/
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { LIMITS, type RequestMetrics } from '../http/request-metrics.ts';
import { FILE_OUTCOMES, type ProcessedFile, ROW_OUTCOMES } from '../ingest/files/file-record.ts';
import type { RequestCounts } from '../limits/request-counts.ts';
import { COMMIT, VERSION } from '../version.ts';
import { GAUGES, type GaugeSources, readGauges } from './gauges.ts';

/** A light request takes 0.1 ms, the largest page a few ms; seconds mean that something is wrong. */
const DURATION_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export interface Metrics extends RequestMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  processed(file: ProcessedFile): void;
  /** Adds the gauges; before that, only events are counted. */
  addGauges(sources: GaugeSources): void;
}

/** @param counts receives what the console shows over time */
export function createMetrics(counts: Pick<RequestCounts, 'answered' | 'refuse'>): Metrics {
  const registry = new Registry();
  const traffic = trafficMetrics(registry);
  const ingest = ingestMetrics(registry);
  new Gauge({
    name: 'wirewatch_build_info',
    help: 'Build information. Always 1.',
    labelNames: ['version', 'commit'],
    registers: [registry],
  }).set({ version: VERSION, commit: COMMIT }, 1);
  let setGauges = async () => {};
  return {
    contentType: registry.contentType,
    async text() {
      await setGauges();
      return registry.metrics();
    },
    answered(answer) {
      traffic.answered(answer);
      counts.answered(answer);
    },
    refused: (limit) => traffic.refused.inc({ limit }),
    keyRefused: counts.refuse,
    processed: ingest,
    addGauges(sources) {
      setGauges = gaugesOf(registry, sources);
    },
  };
}

function trafficMetrics(registry: Registry) {
  const durations = new Histogram({
    name: 'wirewatch_http_request_duration_seconds',
    help: 'Duration of API requests in seconds, until the response was handed to the operating system.',
    labelNames: ['endpoint', 'status'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  });
  const rowsServed = counter(registry, 'wirewatch_rows_served_total', 'Detections returned to clients.', [
    'endpoint',
  ]);
  const rejected = 'Requests and connections rejected by a limit.';
  const refused = counter(registry, 'wirewatch_refused_total', rejected, ['limit']);
  for (const limit of LIMITS) refused.inc({ limit }, 0);
  return {
    refused,
    answered({ endpoint, status, seconds, rows }: Parameters<RequestMetrics['answered']>[0]) {
      durations.observe({ endpoint, status: `${Math.floor(status / 100)}xx` }, seconds);
      if (rows > 0) rowsServed.inc({ endpoint }, rows);
    },
  };
}

function ingestMetrics(registry: Registry): (file: ProcessedFile) => void {
  const labels = ['export', 'outcome'];
  const files = counter(registry, 'wirewatch_files_total', 'Files processed, by outcome.', labels);
  const help = 'Rows of files processed, by outcome.';
  const rows = counter(registry, 'wirewatch_rows_ingested_total', help, labels);
  for (const name of EXPORT_NAMES) {
    for (const outcome of FILE_OUTCOMES) if (outcome !== 'applying') files.inc({ export: name, outcome }, 0);
    for (const outcome of ROW_OUTCOMES) rows.inc({ export: name, outcome }, 0);
  }
  return (file) => {
    const name = file.export ?? 'none';
    files.inc({ export: name, outcome: file.outcome });
    for (const outcome of ROW_OUTCOMES) {
      if (file.rows[outcome] > 0) rows.inc({ export: name, outcome }, file.rows[outcome]);
    }
  };
}

function counter(registry: Registry, name: string, help: string, labelNames: string[]) {
  return new Counter({ name, help, labelNames, registers: [registry] });
}

function gaugesOf(registry: Registry, sources: GaugeSources): () => Promise<void> {
  const metrics = GAUGES.map(({ name, help, labels }) => {
    const options = { name, help, labelNames: labels, registers: [registry] };
    return name.endsWith('_total') ? new Counter(options) : new Gauge(options);
  });
  return async () => {
    const readings = await readGauges(sources);
    for (const [at, metric] of metrics.entries()) {
      const value = readings[at] ?? null;
      metric.reset();
      // One without labels would be 0 after the reset.
      if (value === null && GAUGES[at]?.labels.length === 0) metric.remove();
      for (const [count, ...labels] of typeof value === 'number' ? [[value] as const] : (value ?? []))
        metric.labels(...labels).inc(count);
    }
  };
}
