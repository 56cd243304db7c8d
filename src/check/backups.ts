/** The scheduled backup: whether it can be made where it is to be, how old it is, and whether a restore was tried. */
import { dirname } from 'node:path';
import { type BackupTimes, backupTimes } from '../backup/branch.ts';
import { isOverdue, rehearsalText } from '../backup/schedule.ts';
import type { Config } from '../config/load.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, MINUTE_MS } from '../time.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

const CHECK = 'backups';
const RIGHTS =
  'Give the user of the appliance the right to write there (chown), or name another folder with [backup] folder.';

export function checkBackups({ backup, dataFolder }: Config, nowMs: number): Finding {
  const { folder, every_minutes } = backup;
  if (every_minutes === 0)
    return ok(CHECK, 'none is scheduled ([backup] every_minutes is 0); to make one: wirewatch backup FOLDER');
  const found = statOf(folder);
  if (found === null) return judgeMissing(folder, dataFolder);
  if (typeof found === 'string') return bad(CHECK, `${folder}: ${found}`, RIGHTS);
  if (!found.isDirectory()) return bad(CHECK, `${folder} is no folder`, RIGHTS);
  if (!isUsable(folder)) return bad(CHECK, `${folder}: this user may not read and write it`, RIGHTS);
  try {
    return judgeAge(folder, backupTimes(folder), every_minutes, nowMs);
  } catch (error) {
    return bad(CHECK, `${folder}: ${reasonOf(error)}`, RIGHTS);
  }
}

/** The appliance makes the folder, and the data folder, but none above: they would fill another disk. */
function judgeMissing(folder: string, dataFolder: string): Finding {
  const parent = dirname(folder);
  const found = statOf(parent);
  if (found === null && parent !== dataFolder) {
    return bad(
      CHECK,
      `${folder} cannot be made: ${parent} is not there`,
      'Mount its disk, or make that folder for the user of the appliance.',
    );
  }
  if (found !== null && !isUsable(parent))
    return bad(CHECK, `${folder} is not there, and this user cannot make it in ${parent}`, RIGHTS);
  return noneYet(folder);
}

function noneYet(folder: string): Finding {
  return warn(
    CHECK,
    `there is none in ${folder} yet`,
    'The appliance makes one as soon as it runs; where none comes, its log says why. To have one at once: wirewatch backup FOLDER',
  );
}

function judgeAge(folder: string, times: BackupTimes, everyMinutes: number, nowMs: number): Finding {
  const { backedUpMs } = times;
  if (backedUpMs === null) return noneYet(folder);
  const shown = (count: number) => count.toLocaleString('en-US');
  const minutes = Math.max(0, Math.floor((nowMs - backedUpMs) / MINUTE_MS));
  const { text, todo } = rehearsalText(folder, times, nowMs);
  const detail = `every ${shown(everyMinutes)} minutes; ${folder} was brought up to date at ${formatMs(backedUpMs)}, ${shown(minutes)} minutes ago, and ${text}`;
  if (isOverdue(backedUpMs, everyMinutes, nowMs))
    return warn(
      CHECK,
      `overdue: ${detail}`,
      'See that the appliance runs, and in its log why it was not made. To have it at once: wirewatch backup FOLDER',
    );
  return todo === null ? ok(CHECK, detail) : warn(CHECK, detail, `${todo}.`);
}
