/** The data folder and the photo folder: whether this user, and nobody else, can use them as the appliance must. */
import { accessSync, constants, readdirSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { reasonOf } from '../refused.ts';
import { dataFolder, refuseLinks } from '../store/folder.ts';
import { bad, type Finding, ok, warn } from './finding.ts';

const OTHERS = 0o077;

/** `closed`: something is there, but what lies in it cannot be looked at. */
export type FolderState = 'absent' | 'closed' | 'open';

export function checkDataFolder(root: string): { finding: Finding; state: FolderState } {
  const check = 'data folder';
  const found = statOf(root);
  if (typeof found === 'string') {
    return {
      finding: bad(check, `${root}: ${found}`, 'Give this user the right to reach it.'),
      state: 'closed',
    };
  }
  if (found === null) return { finding: absent(check, root), state: 'absent' };
  if (!found.isDirectory()) {
    const todo = 'Name another with --data, or move the file away.';
    return { finding: bad(check, `${root} is no folder`, todo), state: 'closed' };
  }
  const owned = judgeOwner(check, root, found);
  const finding = owned.status === 'bad' ? owned : (foundLink(check, root) ?? owned);
  return { finding, state: isOpen(root) ? 'open' : 'closed' };
}

function foundLink(check: string, root: string): Finding | null {
  try {
    refuseLinks(dataFolder(root));
    return null;
  } catch (error) {
    return bad(check, reasonOf(error), 'Remove the link, and put the file or folder itself there.');
  }
}

function absent(check: string, root: string): Finding {
  let parent = dirname(root);
  while (statOf(parent) === null && dirname(parent) !== parent) parent = dirname(parent);
  return isUsable(parent)
    ? warn(
        check,
        `${root} is not there yet`,
        'The first start, or the first command, makes it. Is it the right one? --data names another.',
      )
    : bad(
        check,
        `${root} is not there, and this user cannot make it in ${parent}`,
        'Make it for the user of the appliance, with mode 0700, or name another with --data.',
      );
}

function judgeOwner(check: string, root: string, found: Stats): Finding {
  const uid = process.getuid?.();
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  const detail = `${root}, mode ${mode}`;
  if (uid !== undefined && uid !== found.uid) {
    const mine = `${detail}, belongs to user id ${found.uid}, and this is ${uid}`;
    return uid === 0 && isUsable(root)
      ? warn(
          check,
          mine,
          'Run this, and every other command, as the user of the appliance: files made by root would keep it out.',
        )
      : bad(check, mine, 'Run this as the user of the appliance, or give the folder to it (chown -R).');
  }
  if (!isUsable(root)) return bad(check, `${detail}: this user may not write to it`, `chmod 0700 ${root}`);
  if ((found.mode & OTHERS) !== 0) {
    return warn(
      check,
      `${detail}: other users of the machine can reach into it, and the secret and the hashes of keys lie there`,
      `chmod 0700 ${root}`,
    );
  }
  return ok(check, detail);
}

/** @param isNeeded whether there is an image export */
export function checkPhotoFolder(folder: string, isNeeded: boolean): Finding {
  const check = 'photo folder';
  if (!isNeeded) return ok(check, 'not needed: [exports.imagewire] is switched off');
  try {
    return ok(check, `${folder}, ${readdirSync(folder).length.toLocaleString('en-US')} entries`);
  } catch (error) {
    if (statOf(folder) === null)
      return ok(check, `${folder} is not there: the appliance's own photo addresses answer 404`);
    return bad(
      check,
      `${folder}: ${reasonOf(error, folder)}`,
      'Give the user of the appliance the right to read it, or set [photos] folder.',
    );
  }
}

/** It is not opened, since that would make it. */
export function checkLogFile(path: string): Finding {
  const check = 'log file';
  const place = statOf(path) === null ? dirname(path) : path;
  try {
    accessSync(place, constants.W_OK);
    return ok(check, path);
  } catch (error) {
    const todo = 'Make the folder, and give the user of the appliance the right to write there.';
    return bad(check, `${path}: ${reasonOf(error, path)}`, todo);
  }
}

/** Null: there is nothing; a text: why it cannot be told. */
export function statOf(path: string): Stats | null | string {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Whether this user may list, enter and write to a folder. */
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
