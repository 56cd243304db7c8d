/** The data folder and the photo folder: whether this user, and no other, can use them. */
import { accessSync, constants, readdirSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { counted } from '../counted.ts';
import { reasonOf } from '../refused.ts';
import { dataFolder, refuseLinks } from '../store/folder.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

const OTHERS = 0o077;

/** `closed`: it exists, but its contents cannot be read. */
export type FolderState = 'absent' | 'closed' | 'open';

export function checkDataFolder(root: string): { finding: Finding; state: FolderState } {
  const check = 'data folder';
  const found = statOf(root);
  if (typeof found === 'string') {
    return {
      finding: bad(check, `${root}: ${found}`, 'Give this user access.'),
      state: 'closed',
    };
  }
  if (found === null) return { finding: absent(check, root), state: 'absent' };
  if (!found.isDirectory()) {
    const todo = 'Name another folder with --data, or move the file away.';
    return { finding: bad(check, `${root} is not a folder`, todo), state: 'closed' };
  }
  const owned = checkOwner(check, root, found);
  const finding = owned.status === 'bad' ? owned : (foundLink(check, root) ?? owned);
  return { finding, state: isOpen(root) ? 'open' : 'closed' };
}

function foundLink(check: string, root: string): Finding | null {
  try {
    refuseLinks(dataFolder(root));
    return null;
  } catch (error) {
    return bad(check, reasonOf(error), 'Replace the link with the file or folder itself.');
  }
}

function absent(check: string, root: string): Finding {
  let parent = dirname(root);
  while (statOf(parent) === null && dirname(parent) !== parent) parent = dirname(parent);
  return isUsable(parent)
    ? warn(
        check,
        `${root} does not exist yet`,
        'The first start or command creates it. If it is not the right folder, name another with --data.',
      )
    : bad(
        check,
        `${root} does not exist, and this user cannot create it in ${parent}`,
        'Create it for the user that Wirewatch runs as, with mode 0700, or name another with --data.',
      );
}

function checkOwner(check: string, root: string, found: Stats): Finding {
  const uid = process.getuid?.();
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  const detail = `${root}, mode ${mode}`;
  if (uid !== undefined && uid !== found.uid) {
    const mine = `${detail}, owned by user id ${found.uid}, but this command runs as ${uid}`;
    return uid === 0 && isUsable(root)
      ? warn(
          check,
          mine,
          'Run all commands as the user that Wirewatch runs as: it has no access to files that root creates.',
        )
      : bad(
          check,
          mine,
          'Run this command as the user that Wirewatch runs as, or give the folder to that user (chown -R).',
        );
  }
  if (!isUsable(root)) return bad(check, `${detail}: this user cannot write to it`, `chmod 0700 ${root}`);
  if ((found.mode & OTHERS) !== 0) {
    return warn(
      check,
      `${detail}: other users of this machine have access to it, and it contains the secret and the hashes of keys`,
      `chmod 0700 ${root}`,
    );
  }
  return ok(check, detail);
}

/** @param isNeeded whether the image export is in use */
export function checkPhotoFolder(folder: string, isNeeded: boolean): Finding {
  const check = 'photo folder';
  if (!isNeeded) return ok(check, 'not needed: [exports.imagewire] is switched off');
  try {
    return ok(check, `${folder}, ${counted(readdirSync(folder).length, 'entry', 'entries')}`);
  } catch (error) {
    if (statOf(folder) === null)
      return ok(check, `${folder} does not exist: photo addresses of Wirewatch return 404`);
    return bad(
      check,
      `${folder}: ${reasonOf(error, folder)}`,
      'Give the user that Wirewatch runs as read access, or set [photos] folder.',
    );
  }
}

/** The file is not opened, since that would create it. */
export function checkLogFile(path: string): Finding {
  const check = 'log file';
  const place = statOf(path) === null ? dirname(path) : path;
  try {
    accessSync(place, constants.W_OK);
    return ok(check, path);
  } catch (error) {
    const todo = 'Create the folder, and give the user that Wirewatch runs as write access.';
    return bad(check, `${path}: ${reasonOf(error, path)}`, todo);
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

function isAllowed(folder: string, mode: number): boolean {
  try {
    accessSync(folder, mode);
    return true;
  } catch {
    return false;
  }
}
