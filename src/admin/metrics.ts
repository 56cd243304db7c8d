/**
 * The metrics, and the one door to prom-client: what is counted as it happens, and what is looked at when it is
 * asked for. The manual's topic `monitoring` lists them, and a test holds it to that.
 *
 * https://prometheus.io/docs/practices/naming/
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { FILE_OUTCOMES } from '../ingest/file-record.ts';
import { type ProcessedFile, ROW_OUTCOMES } from '../ingest/threads/ingest-messages.ts';
import { LIMITS, type Limit } from '../limits/limit.ts';
import type { RequestCounts } from '../limits/request-counts.ts';
import { COMMIT, VERSION } from '../version.ts';
import { processFacts } from './process-facts.ts';
import { type Fact, facts, type StandingSources, type Value } from './status.ts';

/** Light requests take a tenth of a millisecond, the largest pages some of them; seconds mean that something is wrong. */
const DURATION_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const TOKEN_ENDPOINT = '/oauth/token';

export interface Metrics {
  readonly contentType: string;
  /** In the text format of Prometheus. */
  text(): Promise<string>;
  answered(endpoint: string, status: number, seconds: number, rows: number): void;
  refused(limit: Limit): void;
  turnedAway(keyId: string, code: string): void;
  processed(file: ProcessedFile): void;
  /** Names what is looked at when metrics are asked for; until then only what happens is counted. */
  watch(sources: StandingSources): void;
}

/** @param counts what the console shows over time is counted there as well */
export function createMetrics(counts: Pick<RequestCounts, 'add' | 'refuse'>): Metrics {
  const registry = new Registry();
  const traffic = trafficMetrics(registry);
  const ingest = ingestMetrics(registry);
  new Gauge({
    name: 'wirewatch_build_info',
    help: 'Build information. Always 1.',
    labelNames: ['version', 'commit'],
    registers: [registry],
  }).set({ version: VERSION, commit: COMMIT }, 1);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    answered(endpoint, status, seconds, rows) {
      traffic.answered(endpoint, status, seconds, rows);
      counts.add('requests', 1);
      if (status >= 400 && status < 500) counts.add('refused', 1);
      if (rows > 0) counts.add('rows_served', rows);
    },
    refused: (limit) => traffic.refused.inc({ limit }),
    turnedAway: counts.refuse,
    processed(file) {
      ingest(file);
      const { created, updated, rescored, unchanged } = file.rows;
      const read = created + updated + rescored + unchanged;
      if (file.outcome === 'applied' && read > 0) counts.add('rows_ingested', read);
    },
    watch: (sources) => watchStanding(registry, sources),
  };
}

function trafficMetrics(registry: Registry) {
  const registers = [registry];
  const durations = new Histogram({
    name: 'wirewatch_http_request_duration_seconds',
    help: 'Duration of API requests in seconds, until the response was handed to the operating system.',
    labelNames: ['endpoint', 'status'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const rowsServed = new Counter({
    name: 'wirewatch_rows_served_total',
    help: 'Detections returned to clients.',
    labelNames: ['endpoint'],
    registers,
  });
  const tokens = new Counter({
    name: 'wirewatch_tokens_issued_total',
    help: 'Access tokens issued.',
    registers,
  });
  const refused = new Counter({
    name: 'wirewatch_refused_total',
    help: 'Requests and connections rejected by a limit.',
    labelNames: ['limit'],
    registers,
  });
  for (const limit of LIMITS) refused.inc({ limit }, 0);
  return {
    refused,
    answered(endpoint: string, status: number, seconds: number, rows: number) {
      durations.observe({ endpoint, status: `${Math.floor(status / 100)}xx` }, seconds);
      if (rows > 0) rowsServed.inc({ endpoint }, rows);
      if (endpoint === TOKEN_ENDPOINT && status === 200) tokens.inc();
    },
  };
}

/** @returns counts a file */
function ingestMetrics(registry: Registry): (file: ProcessedFile) => void {
  const registers = [registry];
  const files = new Counter({
    name: 'wirewatch_files_total',
    help: 'Files processed, by outcome.',
    labelNames: ['export', 'outcome'],
    registers,
  });
  const rows = new Counter({
    name: 'wirewatch_rows_ingested_total',
    help: 'Rows of files processed, by outcome.',
    labelNames: ['export', 'outcome'],
    registers,
  });
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

function watchStanding(registry: Registry, sources: StandingSources): void {
  for (const { name, help, labels, read } of [...facts(sources), ...processFacts()]) {
    const terms = { name, help, labelNames: [...labels], registers: [registry] };
    // What cannot be read has no value; the alerts say why.
    const look = () => readSafely(sources, read);
    if (name.endsWith('_total')) {
      new Counter({
        ...terms,
        async collect() {
          const values = await look();
          this.reset();
          for (const { labels: of, value } of values) this.inc(of, value);
        },
      });
    } else {
      new Gauge({
        ...terms,
        async collect() {
          const values = await look();
          this.reset();
          // One without labels would be 0.
          if (values.length === 0 && labels.length === 0) this.remove();
          for (const { labels: of, value } of values) this.set(of, value);
        },
      });
    }
  }
}

async function readSafely({ monitor }: StandingSources, read: Fact['read']): Promise<Value[]> {
  try {
    return await read();
  } catch (error) {
    monitor.noteFault(error);
    return [];
  }
}
