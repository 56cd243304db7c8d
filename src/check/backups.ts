/** Scheduled backups: whether they can be made where they are to be, and how old the newest is. */
import { dirname } from 'node:path';
import { type KeptFile, listKept, newestGood } from '../backup/kept-files.ts';
import { isOverdue } from '../backup/schedule.ts';
import type { Config } from '../config/load.ts';
import { reasonOf } from '../refused.ts';
import { formatMs, HOUR_MS } from '../time.ts';
import { bad, type Finding, ok, warn } from './finding.ts';
import { isUsable, statOf } from './folders.ts';

const CHECK = 'backups';
const RIGHTS =
  'Give the user of the appliance the right to write there (chown), or name another folder with [backup] folder.';

export function checkBackups({ backup, dataFolder }: Config, nowMs: number): Finding {
  const { folder, every_hours } = backup;
  if (every_hours === 0)
    return ok(CHECK, 'none is scheduled ([backup] every_hours is 0); to make one: wirewatch backup FILE');
  const found = statOf(folder);
  if (found === null) return judgeMissing(folder, dataFolder);
  if (typeof found === 'string') return bad(CHECK, `${folder}: ${found}`, RIGHTS);
  if (!found.isDirectory()) return bad(CHECK, `${folder} is no folder`, RIGHTS);
  if (!isUsable(folder)) return bad(CHECK, `${folder}: this user may not read and write it`, RIGHTS);
  try {
    const newest = newestGood(listKept(folder), nowMs);
    return newest === null ? noneYet(folder) : judgeNewest(newest, every_hours, nowMs);
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
    `there is no good one in ${folder} yet`,
    'The appliance makes one as soon as it runs; where none comes, its log says why. To have one at once: wirewatch backup FILE',
  );
}

function judgeNewest(newest: KeptFile, everyHours: number, nowMs: number): Finding {
  const hours = Math.max(0, Math.floor((nowMs - newest.at) / HOUR_MS));
  const detail = `every ${everyHours} hours; the newest, ${newest.path}, is of ${formatMs(newest.at)}, ${hours} hours ago`;
  return isOverdue(newest, everyHours, nowMs)
    ? warn(
        CHECK,
        `overdue: ${detail}`,
        'See that the appliance runs, and in its log why none was made. To have one at once: wirewatch backup FILE',
      )
    : ok(CHECK, detail);
}
