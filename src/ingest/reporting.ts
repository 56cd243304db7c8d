/** How ingest reports: lines of the log, and the conditions of alerts. */
import type { IngestEvent } from './threads/ingest-thread.ts';

/**
 * Alert conditions of ingest. The main thread keeps them in memory: neither a full disk nor a damaged database can store
 * them.
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

export interface Reporting {
  readonly log: (
    level: 'debug' | 'info' | 'warn' | 'error',
    msg: string,
    fields?: Record<string, unknown>,
  ) => void;
  /** Begins a condition, or changes its detail; null: it is over. */
  readonly setCondition: (name: IngestCondition, detail: string | null) => void;
}

/** Reports by events; of conditions, only changes. */
export function reportingBy(send: (event: IngestEvent) => void): Reporting {
  const known = new Map<IngestCondition, string | null>();
  return {
    log: (level, msg, fields = {}) => send({ kind: 'log', level, msg, fields }),
    setCondition(name, detail) {
      if ((known.get(name) ?? null) !== detail) send({ kind: 'condition', name, detail });
      known.set(name, detail);
    },
  };
}
