/** The scheduled backup: whether its folder is usable, and how old it is. */
import { dirname } from 'node:path';
import { backedUpMs } from '../backup/branch.ts';
import { isOverdue } from '../backup/schedule.ts';
import type { Config } from '../config/load.ts';
import { counted } from '../counted.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { bad, type Outcome, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

const RIGHTS =
  'Give the user that Wirewatch runs as write access (chown), or name another folder with [backup] folder.';

export function checkBackups({ backup, dataFolder }: Config, nowMs: number): Outcome {
  const { folder, every_minutes } = backup;
  if (every_minutes === 0)
    return ok(
      'not scheduled: [backup] every_minutes is 0. To make a backup by hand: wirewatch backup FOLDER',
    );
  const found = statOf(folder);
  if (found === null) return checkMissing(folder, dataFolder);
  if (typeof found === 'string') return bad(`${folder}: ${found}`, RIGHTS);
  if (!found.isDirectory()) return bad(`${folder} is not a folder`, RIGHTS);
  if (!isUsable(folder)) return bad(`${folder}: this user cannot read and write it`, RIGHTS);
  try {
    return checkAge(folder, backedUpMs(folder), every_minutes, nowMs);
  } catch (error) {
    return bad(`${folder}: ${reasonOf(error)}`, RIGHTS);
  }
}

/** The appliance creates the folder and the data folder, but none above them: they would fill another disk. */
function checkMissing(folder: string, dataFolder: string): Outcome {
  const parent = dirname(folder);
  const found = statOf(parent);
  if (found === null && parent !== dataFolder) {
    return bad(
      `${folder} cannot be created: ${parent} does not exist`,
      'Mount its disk, or create that folder for the user that Wirewatch runs as.',
    );
  }
  if (found !== null && !isUsable(parent))
    return bad(`${folder} does not exist, and this user cannot create it in ${parent}`, RIGHTS);
  return noneYet(folder);
}

function noneYet(folder: string): Outcome {
  return warn(
    `no backup in ${folder} yet`,
    'Wirewatch makes one soon after it starts; if it does not, its log output says why. To make one now: wirewatch backup FOLDER',
  );
}

function checkAge(folder: string, atMs: number | null, everyMinutes: number, nowMs: number): Outcome {
  if (atMs === null) return noneYet(folder);
  const minutes = Math.max(0, Math.floor((nowMs - atMs) / MINUTE_MS));
  const detail = `every ${counted(everyMinutes, 'minute')}; ${folder} was last updated at ${formatMs(atMs)}, ${counted(minutes, 'minute')} ago`;
  if (isOverdue(atMs, everyMinutes, nowMs))
    return warn(
      `overdue: ${detail}`,
      'Check that Wirewatch is running, and look for the cause in its log output. To make a backup now: wirewatch backup FOLDER',
    );
  return ok(detail);
}
