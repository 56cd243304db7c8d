/** The data folder: whether this user, and no other, can use it; the log file and the alert command. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { reasonOf } from '../refused.ts';
import { type DataFolder, refuseLinks, requireUsable } from '../store/folder.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';

const OTHERS = 0o077;
const CHOWN =
  'Give the folder and its files to the user that Wirewatch runs as (chown -R), and run this command as that user.';

export function checkDataFolder(folder: DataFolder): Outcome {
  const { root } = folder;
  const found = statOf(root);
  if (found === null) return absent(root);
  try {
    requireUsable(folder);
    refuseLinks(folder);
  } catch (error) {
    return bad(reasonOf(error), CHOWN);
  }
  if (typeof found === 'string') return bad(`${root}: ${found}`, CHOWN);
  const detail = `${root}, mode ${(found.mode & 0o7777).toString(8).padStart(4, '0')}`;
  if (process.getuid !== undefined && process.getuid() !== found.uid)
    return warn(
      `${detail}, owned by user id ${found.uid}, but this command runs as ${process.getuid()}`,
      'Run this command as the user that Wirewatch runs as: only then does it test what that user can read and write.',
    );
  return (found.mode & OTHERS) === 0
    ? ok(detail)
    : warn(
        `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
        `chmod 0700 ${root}`,
      );
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

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
