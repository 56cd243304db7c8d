/** What the tests of crashes look at afterwards. */

import { join } from 'node:path';
import { isObject, parse } from '../../src/history/format.ts';
import { entriesAfter } from '../../src/history/log-reader.ts';
import { openDatabase } from '../../src/store/database.ts';
import type { Installation } from './appliance.ts';
import type { LogLine } from './program.ts';
import { checkStreams } from './streams.ts';

/** A file's record, as the log has it. */
export interface LoggedFile {
  readonly number: number;
  readonly name: string;
  readonly outcome: string;
  readonly destination: string | null;
  readonly sha256: string | null;
  readonly rows_applied: number;
}

export function isComplaint({ level }: LogLine): boolean {
  return level === 'error' || level === 'fatal';
}

/** Every record of a file in the log, in its order: each time as it was then. */
export function loggedFiles(data: string): LoggedFile[] {
  const files: LoggedFile[] = [];
  for (const { part } of entriesAfter(join(data, 'log'), 'detections', null)) {
    for (const text of part.lines) {
      const line = parse(text);
      if (isObject(line) && line.put === 'ingest_file') files.push(JSON.parse(JSON.stringify(line.row)));
    }
  }
  return files;
}

/** The last position that each entry of the log has given out; entries without one are left out. */
export function loggedPositions(data: string): number[] {
  const positions: number[] = [];
  for (const { part } of entriesAfter(join(data, 'log'), 'detections', null)) {
    for (const text of part.lines) {
      const line = parse(text);
      if (!isObject(line) || line.put !== 'delivery' || !isObject(line.row)) continue;
      const position = Number(line.row.last_position);
      if (positions.at(-1) !== position) positions.push(position);
    }
  }
  return positions;
}

const SELECT_DETECTIONS = `
  SELECT id, version, coalesce(rescored.body, row.body) AS body
  FROM detection JOIN stream_row AS row USING (place) LEFT JOIN rescored USING (place) ORDER BY id`;

/** Every detection, in order; its streams are checked on the way. */
export function detectionsOf({ data }: Installation): unknown[] {
  const db = openDatabase(join(data, 'detections.db'), 'read');
  try {
    checkStreams(db);
    return db.prepare(SELECT_DETECTIONS).all();
  } finally {
    db.close();
  }
}
