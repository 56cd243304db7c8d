/**
 * Packing and unpacking a backup as one tar file: the one door to the library.
 *
 * Nothing in a tar file is trusted: its entries must be plain files with the names of a backup, each once.
 */
import { createWriteStream, readdirSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { create, extract, type ReadEntry } from 'tar';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { syncFile, syncFolder } from '../store/folder.ts';

const READ_BYTES = 1024 * 1024;
const NAMES = /^(backup\.json|secret|(log|access-log)\/\d{12}\.zst)$/;
/** The maximum size of backup.json and the secret. */
const SMALL_BYTES_MAX = 64 * 1024;

/** Packs a backup into a new file that only this user can read; on disk afterwards. */
export async function packTar(folder: string, target: string): Promise<void> {
  const options = { cwd: folder, portable: true, strict: true, maxReadSize: READ_BYTES };
  await pipeline(
    create(options, filesIn(folder).sort()),
    createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true }),
  );
}

/**
 * Unpacks a backup into a folder, even if it was compressed with gzip.
 *
 * @throws Refused `failed` if it is not a backup; the text follows the name of the file
 */
export async function unpackTar(path: string, folder: string): Promise<void> {
  const seen = new Set<string>();
  const foreign: string[] = [];
  const filter = (name: string, entry: ReadEntry | Stats) => {
    const type = 'type' in entry ? entry.type : '';
    const isSized = entry.size <= SMALL_BYTES_MAX || name.endsWith('.zst');
    if (type !== 'File' || !NAMES.test(name) || !isSized || seen.has(name))
      foreign.push(`${JSON.stringify(name)} (${type})`);
    seen.add(name);
    return foreign.length === 0;
  };
  try {
    await extract({
      file: path,
      cwd: folder,
      strict: true,
      filter,
      fmode: 0o600,
      dmode: 0o700,
      noChmod: true,
    });
  } catch (error) {
    if (foreign.length === 0 && isErrorCode(error, 'ENOSPC', 'EDQUOT', 'EIO', 'EACCES')) throw error;
    if (foreign.length === 0)
      throw new Refused('failed', `it is damaged, truncated or not a tar file (${reasonOf(error)})`, {
        cause: error,
      });
  }
  if (foreign.length > 0) throw new Refused('failed', `it is not a backup: it contains ${foreign[0]}`);
  for (const name of filesIn(folder)) {
    syncFile(join(folder, name));
    syncFolder(dirname(join(folder, name)));
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => NAMES.test(name));
}
