/** Makes and reads copies, without the program. */
import { join } from 'node:path';
import { findAccess } from '../../src/auth/spare-copy.ts';
import { backUp } from '../../src/cli/backup.ts';
import type { Config } from '../../src/config/load.ts';
import { FIRST_GENERATION, type OnProgress, partName } from '../../src/copy/copy-contents.ts';
import type { Place, PlaceSettings } from '../../src/copy/place.ts';
import { type RestoreOptions, restore } from '../../src/copy/restore.ts';
import { createShipper, type Shipper } from '../../src/copy/ship.ts';
import { loadCopy, openCopy } from '../../src/copy/source.ts';
import { parseFileName } from '../../src/exports/file-name.ts';
import type { Commit, Mark, Operation } from '../../src/log/format.ts';
import { encodeFrame } from '../../src/log/frame.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { commitAfter } from '../../src/log/log-writer.ts';
import { dataFolder } from '../../src/store/folder.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import type { History } from './history.ts';
import type { MemoryPlace } from './memory-place.ts';
import { testFolder } from './test-folder.ts';

const SETTINGS: PlaceSettings = { endpoint: '', region: 'us-east-1', credentials: '' };

/** Brings the copy of a data folder up to date. */
export function copyTo(to: string, data: string, onProgress: OnProgress = () => {}) {
  const config = { copy: SETTINGS, dataFolder: data, ingest: { drop: join(data, 'drop') } };
  return backUp(to, config as Config, onProgress, { mayBeginAnew: true });
}

/** Brings a copy of a history up to date. */
export async function shipTo(to: Place | Shipper, { folder, db }: History): Promise<void> {
  const shipper = 'ship' in to ? to : createShipper(to, folder, { mayBeginAnew: true });
  const access = findAccess(folder);
  await shipper.ship(access, readLogMark(db()));
}

/** Adds an entry as another machine would, behind one. */
export function addEntry({ objects }: MemoryPlace, last: Mark | null, operation: Operation): Commit {
  const commit = commitAfter(last, operation, Date.now());
  const content = encodeFrame('commit', `${JSON.stringify({ commit })}\n`);
  objects.set(partName(FIRST_GENERATION, commit.entry), content);
  return commit;
}

/** A copy, to restore from. */
export const sourceAt = (path: string) => openCopy(path, SETTINGS);

/** Restores a copy into a data folder, in place of what is there. */
export async function restoreFrom(copy: Place | string, data: string, more: Partial<RestoreOptions> = {}) {
  const source = typeof copy === 'string' ? await sourceAt(copy) : copy;
  const drop = { root: join(data, 'drop'), parse: parseFileName };
  const usual = { replace: true, untilMs: null, drop, now: Date.now, onProgress() {} };
  return restore({ ...usual, source, data, ...more });
}

/** The lines of the log in a copy, and the id of its last entry. */
export async function logOf(copy: string): Promise<{ readonly lines: string[]; readonly last: string }> {
  const stage = dataFolder(testFolder());
  await loadCopy(await sourceAt(copy), stage, () => {});
  const parts = [...entriesAfter(stage.log, null)].map(({ part }) => part);
  const last = parts.findLast((part) => part.commit !== null);
  return { lines: parts.flatMap((part) => [...part.lines()]), last: last?.commit?.id ?? '' };
}
