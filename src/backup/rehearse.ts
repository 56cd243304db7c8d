/** Rehearses a restore: into a temporary folder in the data folder, compared with the installation. */

import { existsSync, mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { counted, grouped } from '../counted.ts';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { takeLock } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { placeOf } from '../store/stream-place.ts';
import { noteRehearsal, readState } from './branch.ts';
import { explained, makeSound, type RestoreOptions } from './restore.ts';
import type { NewState } from './restored-state.ts';
import { findSource, type Source } from './source.ts';

export interface Rehearsed
  extends Pick<NewState, 'backed_up_at' | 'state_of' | 'detections' | 'stream_rows' | 'accounts' | 'keys'> {
  readonly source: string;
  /** How long it took to build and check the databases. */
  readonly seconds: number;
  /** Rows of the change stream that were compared; null: there is no installation. */
  readonly compared: number | null;
  /** Rows that the installation has beyond the backup: a restore elsewhere would lose them. */
  readonly newer: number | null;
  readonly differences: readonly string[];
  /** Why the rehearsal is not recorded in the backup folder; null: it is. */
  readonly not_noted: string | null;
}

const PAGE_ROWS = 1_000;
/** Sequence numbers have no gaps: that of the last row is the number of rows. */
const SELECT_STREAMS = `
  SELECT subscription_id || ':' || content_type AS name, ordinal, sequence AS rows
  FROM stream WHERE removed = 0 ORDER BY ordinal`;
/** Short, because a long read would let the write-ahead log grow. */
const SELECT_PAGE = `
  SELECT group_concat(position || ' ' || version || ' ' || body, char(10) ORDER BY place) AS text
  FROM stream_row WHERE place BETWEEN :first AND :last`;

interface Stream {
  readonly name: string;
  readonly ordinal: number;
  readonly rows: number;
}

/** @throws Refused `failed` if the backup cannot be restored */
export async function rehearse(options: Omit<RestoreOptions, 'replace' | 'untilMs'>): Promise<Rehearsed> {
  const live = dataFolder(options.data);
  requireOwner(live);
  const source = findSource(options.source);
  const isNewFolder = !existsSync(live.root);
  const place = join(live.root, '.rehearsal');
  const stage = dataFolder(join(place, 'data'));
  try {
    mkdirSync(place, { recursive: true, mode: 0o700 });
    const release = takeLock(join(place, 'lock'));
    if (release === null)
      throw new Refused('failed', `another rehearsal is running in ${place}. Try again later.`);
    try {
      const beganMs = performance.now();
      rmSync(stage.root, { recursive: true, force: true });
      mkdirSync(stage.root, { mode: 0o700 });
      const made = await makeSound({ ...options, untilMs: null }, source, stage, null);
      const { state_of, detections, stream_rows, accounts, keys, backed_up_at } = made;
      const seconds = Math.ceil((performance.now() - beganMs) / 100) / 10;
      const compared = compare(stage.detections, live.detections, options.onProgress);
      const not_noted = note(source, compared.differences, options.now());
      const counts = { detections, stream_rows, accounts, keys };
      return {
        source: source.path,
        backed_up_at,
        state_of,
        ...counts,
        seconds,
        ...compared,
        not_noted,
      };
    } finally {
      rmSync(place, { recursive: true, force: true });
      release();
    }
  } catch (error) {
    throw explained(error, live, true);
  } finally {
    if (isNewFolder) removeIfEmpty(live.root);
  }
}

type Compared = Pick<Rehearsed, 'compared' | 'newer' | 'differences'>;

/** Newer rows of the installation are not a difference. */
function compare(restored: string, live: string, onProgress: RestoreOptions['onProgress']): Compared {
  if (!existsSync(live)) return { compared: null, newer: null, differences: [] };
  using own = openDatabase(restored, 'inspect');
  try {
    using here = openDatabase(live, 'inspect');
    return compareStreams(own, here, onProgress);
  } catch (error) {
    return { compared: 0, newer: null, differences: [`${live} cannot be compared: ${reasonOf(error)}`] };
  }
}

function compareStreams(own: Database, here: Database, onProgress: RestoreOptions['onProgress']): Compared {
  const streamsOf = (db: Database) => db.prepare<[], Stream>(SELECT_STREAMS).all();
  const rowsOf = (streams: readonly Stream[]) => streams.reduce((sum, { rows }) => sum + rows, 0);
  const [streams, present] = [streamsOf(own), streamsOf(here)];
  const total = rowsOf(streams);
  const differences: string[] = [];
  let compared = 0;
  for (const stream of streams) {
    const other = present.find(({ name }) => name === stream.name) ?? { ...stream, rows: 0 };
    const [mine, theirs] = [pagesOf(own, stream), pagesOf(here, other)];
    let sequence = 1;
    while (sequence <= stream.rows && other.rows >= stream.rows) {
      const text = mine(sequence, stream.rows);
      if (text === null || text !== theirs(sequence, stream.rows)) break;
      sequence += PAGE_ROWS;
      onProgress('comparing rows', compared + Math.min(sequence - 1, stream.rows), total);
    }
    compared += Math.min(sequence - 1, stream.rows);
    if (sequence <= stream.rows) differences.push(differenceText(stream, other, sequence));
  }
  return { compared, newer: Math.max(0, rowsOf(present) - total), differences };
}

/** The rows of a stream from a sequence number on, as one text; null: there are none. */
function pagesOf(db: Database, { ordinal }: Stream): (sequence: number, end: number) => string | null {
  const page = db.prepare<unknown[], { text: string | null }>(SELECT_PAGE);
  return (sequence, end) => {
    const first = placeOf(ordinal, sequence);
    const last = placeOf(ordinal, Math.min(sequence + PAGE_ROWS - 1, end));
    return page.get({ first, last })?.text ?? null;
  };
}

function differenceText(own: Stream, here: Stream, sequence: number): string {
  const rows = `stream ${own.name}: ${counted(own.rows, 'row')} in the backup, ${grouped(here.rows)} in the installation`;
  if (here.rows < own.rows) return rows;
  const last = Math.min(sequence + PAGE_ROWS - 1, own.rows);
  return `${rows}; they differ between rows ${grouped(sequence)} and ${grouped(last)}`;
}

/** @returns why the rehearsal is not recorded in the backup folder */
function note(source: Source, differences: readonly string[], nowMs: number): string | null {
  if (source.kind === 'file') return 'a .tar file cannot record it';
  if (differences.length > 0) return 'the backup differs from the installation';
  try {
    if (readState(source.path) === null) return `${source.path} is not a branch of a backup folder`;
    noteRehearsal(source.path, nowMs);
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
  }
}
