/** Waiting until an appliance has nothing left to do. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findTail } from '../../src/history/log-reader.ts';
import { applyingFiles } from '../../src/ingest/file-record.ts';
import { openReader } from '../../src/store/database.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import type { Installation, Serving } from './appliance.ts';
import { until } from './until.ts';

/** Waits until nothing is left to be ingested, and everything that was lies where it belongs. */
export async function atRest(
  installation: Pick<Installation, 'data' | 'drop'>,
  serving: Serving,
): Promise<void> {
  const waits = (name: string) => /^(newswire|imagewire)\./.test(name);
  // In the order in which a file goes through them, or one could be overtaken.
  const isBusy = () =>
    isBehind(installation) ||
    readdirSync(installation.drop).some(waits) ||
    readdirSync(join(installation.drop, '.taken')).length > 0;
  await until('it comes to rest', () => !isBusy());
  // What was logged until now has been read when the line of a request that was made now has been.
  const id = (await serving.get('/v1/health')).headers.get('x-request-id');
  await serving.logged('that it was asked', ({ request_id }) => request_id === id);
}

/** Whether the database lacks entries of its log, or a backfill is not at its end. */
function isBehind({ data }: Pick<Installation, 'data'>): boolean {
  if (!existsSync(join(data, 'detections.db'))) return true;
  const db = openReader(join(data, 'detections.db'));
  try {
    const { last } = findTail(join(data, 'log'), 'detections');
    return applyingFiles(db).length > 0 || readLogMark(db)?.id !== last?.id;
  } finally {
    db.close();
  }
}
