/** The data folder: whether this user, and no other, can use it; the log file and the alert command. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { reasonOf } from '../refused.ts';
import { dataFolder, refuseLinks } from '../store/folder.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';

const OTHERS = 0o077;

/** `closed`: it exists, but its contents cannot be read. */
export type FolderState = 'absent' | 'closed' | 'open';

export function checkDataFolder(root: string): { outcome: Outcome; state: FolderState } {
  const found = statOf(root);
  if (typeof found === 'string') {
    return {
      outcome: bad(`${root}: ${found}`, 'Give this user access.'),
      state: 'closed',
    };
  }
  if (found === null) return { outcome: absent(root), state: 'absent' };
  if (!found.isDirectory()) {
    const todo = 'Name another folder with --data, or move the file away.';
    return { outcome: bad(`${root} is not a folder`, todo), state: 'closed' };
  }
  const owned = checkOwner(root, found);
  const outcome = owned.status === 'bad' ? owned : (foundLink(root) ?? owned);
  return { outcome, state: isOpen(root) ? 'open' : 'closed' };
}

function foundLink(root: string): Outcome | null {
  try {
    refuseLinks(dataFolder(root));
    return null;
  } catch (error) {
    return bad(reasonOf(error), 'Replace the link with the file or folder itself.');
  }
}

function absent(root: string): Outcome {
  let parent = dirname(root);
  while (statOf(parent) === null && dirname(parent) !== parent) parent = dirname(parent);
  return isUsable(parent)
    ? warn(
        `${root} does not exist yet`,
        'The first start or command creates it. If it is not the right folder, name another with --data.',
      )
    : bad(
        `${root} does not exist, and this user cannot create it in ${parent}`,
        'Create it for the user that Wirewatch runs as, with mode 0700, or name another with --data.',
      );
}

function checkOwner(root: string, found: Stats): Outcome {
  const uid = process.getuid?.();
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  const detail = `${root}, mode ${mode}`;
  if (uid !== undefined && uid !== found.uid) {
    const mine = `${detail}, owned by user id ${found.uid}, but this command runs as ${uid}`;
    return uid === 0 && isUsable(root)
      ? warn(
          mine,
          'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
        )
      : bad(
          mine,
          'Run this command as the user that Wirewatch runs as, or give the folder to that user (chown -R).',
        );
  }
  if (!isUsable(root)) return bad(`${detail}: this user cannot write to it`, `chmod 0700 ${root}`);
  if ((found.mode & OTHERS) !== 0) {
    return warn(
      `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
      `chmod 0700 ${root}`,
    );
  }
  return ok(detail);
}

/** Looked for as the system does when it runs the command. */
export function checkAlertCommand([program = '']: readonly string[]): Outcome {
  const isPath = program.includes('/');
  const places = isPath
    ? [program]
    : (process.env.PATH ?? '').split(delimiter).map((at) => join(at, program));
  const found = places.find((path) => isAllowed(path, constants.X_OK));
  return found === undefined
    ? bad(
        isPath ? `${program} does not exist, or this user cannot run it` : `no folder of PATH has ${program}`,
        'Install the program, or correct [alerts] command: until then, nobody is told of alerts.',
      )
    : ok(found);
}

/** The file is not opened, since that would create it. */
export function checkLogFile(path: string): Outcome {
  const place = statOf(path) === null ? dirname(path) : path;
  try {
    accessSync(place, constants.W_OK);
    return ok(path);
  } catch (error) {
    const todo = 'Create the folder, and give the user that Wirewatch runs as write access.';
    return bad(`${path}: ${reasonOf(error, path)}`, todo);
  }
}

/** Null: it does not exist; a text: why that is not known. */
export function statOf(path: string): Stats | null | string {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Whether this user can list, enter and write to a folder. */
export function isUsable(folder: string): boolean {
  return isAllowed(folder, constants.R_OK | constants.W_OK | constants.X_OK);
}

function isOpen(folder: string): boolean {
  return isAllowed(folder, constants.R_OK | constants.X_OK);
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
