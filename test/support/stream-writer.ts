/** The writer of ingest on a database that a test has made, with a log of its own. */
import { join } from 'node:path';
import { findTail } from '../../src/history/log-reader.ts';
import { LogWriter } from '../../src/history/log-writer.ts';
import { StreamWriter } from '../../src/ingest/apply/stream-writer.ts';
import type { Database } from '../../src/store/database.ts';

export interface TestWriterOptions {
  readonly now?: () => number;
  readonly onDelivered?: (firstPosition: number, deliveredAtMs: number) => void;
  readonly segmentBytes?: number;
}

/** @param folder its log is made in `log` in it */
export function streamWriterOn(
  db: Database,
  folder: string,
  { now = Date.now, onDelivered = () => {}, segmentBytes = 1_000_000 }: TestWriterOptions = {},
): StreamWriter {
  const log = join(folder, 'log');
  const options = { folder: log, kind: 'detections', program: '1', segmentBytes } as const;
  const writer = new LogWriter(options, findTail(log, 'detections'));
  return new StreamWriter({ db, log: writer, folder: log, now, onDelivered });
}
