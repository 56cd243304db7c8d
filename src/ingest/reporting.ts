/**
 * How ingest reports: lines of the log, and the conditions of alerts. The main thread keeps those in memory: neither a full
 * disk nor a damaged database can store them.
 */
export const INGEST_CONDITIONS = [
  'disk full',
  'drop folder not readable',
  'drop folder not writable',
  'file stuck',
  'held windows',
  'file changed after reading',
  'end of log lost',
  'removal incomplete',
] as const;
export type IngestCondition = (typeof INGEST_CONDITIONS)[number];

export type LogLevel = 'info' | 'warn' | 'error';

export interface Reporting {
  readonly log: (level: LogLevel, msg: string, fields?: Record<string, unknown>) => void;
  /** Begins a condition, or changes its detail; null: it is over. */
  readonly setCondition: (name: IngestCondition, detail: string | null) => void;
}
