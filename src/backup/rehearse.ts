/** Tries whether a backup can be restored: into a temporary folder in the data folder, compared with what is there. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Refused } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import { type Database, openInspector } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { takeLock } from '../store/locks.ts';
import type { NewState } from './new-state.ts';
import { makeSound, type RestoreOptions } from './restore.ts';
import { findSource } from './source.ts';

export interface Rehearsed extends Pick<NewState, 'state_of' | 'detections' | 'stream_rows' | 'keys'> {
  readonly source: string;
  readonly seconds: number;
  /** Rows of the change stream that were compared; null: there is no installation. */
  readonly compared: number | null;
  readonly differences: readonly string[];
}

const SELECT_HEAD = 'SELECT coalesce(max(position), 0) AS head FROM stream';
/** What the rows up to a position come to: a row that is missing, or is another, changes it. */
const SELECT_SUMS = `
  SELECT subscription_id || ':' || content_type AS stream, count(*) AS rows, sum(place % 1000003) AS places,
    sum(length(body)) AS characters, sum(stream_row.position % 1000003) AS positions
  FROM stream CROSS JOIN stream_row ON place >> 34 = ordinal + 0 AND stream_row.position <= :head
  WHERE removed = 0
  GROUP BY ordinal ORDER BY ordinal`;

interface Sums {
  readonly stream: string;
  readonly rows: number;
}

/** @throws Refused `failed` where the backup cannot be restored */
export async function rehearse(options: Omit<RestoreOptions, 'replace' | 'untilMs'>): Promise<Rehearsed> {
  const live = dataFolder(options.data);
  actAsOwner(live);
  const source = findSource(options.source);
  const place = join(live.root, '.rehearsal');
  mkdirSync(place, { recursive: true, mode: 0o700 });
  const release = takeLock(join(place, 'lock'));
  if (release === null) throw new Refused('failed', `another rehearsal in ${place} is under way. Try again.`);
  const stage = dataFolder(join(place, 'data'));
  const beganMs = performance.now();
  try {
    rmSync(stage.root, { recursive: true, force: true });
    mkdirSync(stage.root, { mode: 0o700 });
    const { state_of, detections, stream_rows, keys } = await makeSound(
      { ...options, untilMs: null },
      source,
      stage,
      null,
    );
    const seconds = Math.ceil((performance.now() - beganMs) / 100) / 10;
    const made = { source: source.path, state_of, detections, stream_rows, keys, seconds };
    return { ...made, ...compare(stage.detections, live.detections) };
  } finally {
    rmSync(place, { recursive: true, force: true });
    release();
  }
}

/** Rows that the installation has beyond the backup are no difference. */
function compare(restored: string, live: string): Pick<Rehearsed, 'compared' | 'differences'> {
  const own = openInspector(restored);
  let other: Database | null = null;
  try {
    try {
      other = openInspector(live);
    } catch {
      return { compared: null, differences: [] };
    }
    const head = own.prepare<[], { head: number }>(SELECT_HEAD).get()?.head ?? 0;
    const sumsOf = (db: Database) =>
      new Map(
        db
          .prepare<unknown[], Sums>(SELECT_SUMS)
          .all({ head })
          .map((sums) => [sums.stream, sums]),
      );
    const [mine, theirs] = [sumsOf(own), sumsOf(other)];
    const differences = [...new Set([...mine.keys(), ...theirs.keys()])]
      .filter((stream) => JSON.stringify(mine.get(stream)) !== JSON.stringify(theirs.get(stream)))
      .map(
        (stream) =>
          `stream ${stream}: ${mine.get(stream)?.rows ?? 0} rows in the backup, ${theirs.get(stream)?.rows ?? 0} here up to the same position`,
      );
    return { compared: [...mine.values()].reduce((sum, { rows }) => sum + rows, 0), differences };
  } finally {
    own.close();
    other?.close();
  }
}
