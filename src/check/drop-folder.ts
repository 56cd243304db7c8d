/**
 * The drop folder: whether files can be moved in it as ingest does, and whether others can interfere.
 *
 * The file for the check has a name that begins with a dot, which a running appliance ignores, and is removed.
 */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ForeignFolder, inFolder, OWN_FOLDERS } from '../ingest/drop/own-folder.ts';
import { reasonOf } from '../refused.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

export function checkDropFolder(folder: string): Outcome {
  const problem = problemOf(folder);
  if (problem !== null) return problem;
  const { mode } = statSync(folder);
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0)
    return warn(
      `${folder}: anyone who can write to it can also move archive/ and the files of others`,
      `chmod +t ${folder}`,
    );
  return ok(`${folder}: files can be created and renamed, and its subfolders are on the same file system`);
}

/** What keeps ingest from moving files out of the folder; null if nothing does. */
function problemOf(folder: string): Outcome | null {
  const entry = statOf(folder);
  if (entry === null)
    return warn(
      `${folder} does not exist yet`,
      'The first start creates it and its subfolders. Check that it is the right folder, and that its disk is mounted.',
    );
  if (typeof entry === 'string' || !entry.isDirectory()) {
    const reason = typeof entry === 'string' ? entry : 'it is not a folder';
    return bad(`${folder}: ${reason}`, 'Name another folder with [ingest] drop, or give this user access.');
  }
  const rights = 'Give the user that Wirewatch runs as write access to the folder and its subfolders.';
  const draft = join(folder, `.check-${process.pid}-${randomBytes(6).toString('hex')}`);
  try {
    writeFileSync(draft, '', { flag: 'wx', mode: 0o600 });
    renameSync(draft, `${draft}.renamed`);
  } catch (error) {
    return bad(`${folder}: cannot create and rename a file: ${reasonOf(error)}`, rights);
  } finally {
    rmSync(draft, { force: true });
    rmSync(`${draft}.renamed`, { force: true });
  }
  for (const name of OWN_FOLDERS) {
    const path = join(folder, name);
    const foreign = foreignFolder(folder, name);
    if (foreign !== null) return bad(foreign.problem, foreign.repair);
    const found = statOf(path);
    if (found === null) continue;
    if (typeof found === 'string' || !isUsable(path))
      return bad(`${path}: this user cannot write to it`, rights);
    if (found.dev !== entry.dev) {
      return bad(
        `${path} is on another file system than ${folder}: files cannot be renamed into it`,
        'Put the drop folder and its subfolders on one file system.',
      );
    }
  }
  return null;
}

function foreignFolder(folder: string, name: string): ForeignFolder | null {
  try {
    inFolder(folder, name, () => {});
    return null;
  } catch (error) {
    if (error instanceof ForeignFolder) return error;
    // Whoever uses the folder reports the error.
    return null;
  }
}
