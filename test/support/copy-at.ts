/** Makes and reads copies in folders, without the program. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { backUp } from '../../src/cli/backup.ts';
import type { Config } from '../../src/config/load.ts';
import type { OnProgress } from '../../src/copy/copy-contents.ts';
import type { PlaceSettings } from '../../src/copy/place.ts';
import { loadCopy, openCopy } from '../../src/copy/source.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { dataFolder } from '../../src/store/folder.ts';

const SETTINGS: PlaceSettings = { endpoint: '', region: 'us-east-1', credentials: '' };

/** Brings the copy of a data folder up to date. */
export function copyTo(to: string, data: string, onProgress: OnProgress = () => {}) {
  const config = { copy: SETTINGS, dataFolder: data, ingest: { drop: join(data, 'drop') } };
  return backUp(to, config as Config, onProgress);
}

/** A copy, to restore from. */
export const sourceAt = (path: string) => openCopy(path, SETTINGS);

/** The lines of the log in a copy, and the id of its last entry. */
export async function logOf(copy: string): Promise<{ readonly lines: string[]; readonly last: string }> {
  const stage = dataFolder(mkdtempSync(join(tmpdir(), 'wirewatch-copy-')));
  try {
    await loadCopy(await sourceAt(copy), stage, () => {});
    const parts = [...entriesAfter(stage.log, null)].map(({ part }) => part);
    const lines = parts.flatMap((part) => [...part.lines]);
    const last = parts.findLast((part) => part.commit !== null);
    return { lines, last: last?.commit?.id ?? '' };
  } finally {
    rmSync(stage.root, { recursive: true });
  }
}
