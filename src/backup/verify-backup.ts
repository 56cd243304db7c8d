/** A backup is good when it can be unpacked and what comes out of it is a sound installation: so that is done. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { isDiskFull } from '../store/database-errors.ts';
import { dataFolder } from '../store/folder.ts';
import { Findings } from './findings.ts';
import { makeStage } from './stage.ts';
import { unpackTar } from './tar-file.ts';
import { verify } from './verify.ts';

/**
 * @param file absolute; it is unpacked beside it, or in the temporary folder where that cannot be written to
 * @throws Refused `failed` when it cannot be read or there is no room to unpack it: nothing is known of it then
 */
export async function verifyBackup(
  file: string,
  onProgress: (what: string, done: number, total: number) => void,
): Promise<Findings> {
  const stage = stageFor(file);
  try {
    await unpackTar(file, stage.path, (done) => onProgress('unpacking', done, 0));
    return await verify(dataFolder(stage.path), { archive: null, onProgress });
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES', 'EISDIR', 'EPERM')) {
      const reason = reasonOf(error, file);
      throw new Refused('failed', `cannot read ${file}: ${reason}`, { cause: error });
    }
    if (isDiskFull(error)) {
      throw new Refused(
        'failed',
        `there is no room to unpack ${file} in ${dirname(stage.path)}. Make room there, or copy the backup to another disk first.`,
        { cause: error },
      );
    }
    if (!(error instanceof Refused)) throw error;
    const findings = new Findings();
    findings.add('backup file', error.message);
    return findings;
  } finally {
    stage.remove();
  }
}

function stageFor(file: string): { path: string; remove(): void } {
  try {
    return makeStage(dirname(file));
  } catch (error) {
    if (!isErrorCode(error, 'EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'SQLITE_CANTOPEN')) throw error;
    const path = mkdtempSync(join(tmpdir(), 'wirewatch-'));
    return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
  }
}
