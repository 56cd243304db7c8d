/**
 * A folder for what is being made, beside where it will be: a backup appears under its name only when it is whole.
 *
 * Its maker holds a lock in it, which ends with the process. So what a killed one left behind is known, and the next
 * one removes it, while one that is at work elsewhere on the same folder is not disturbed.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { takeLock } from '../store/locks.ts';

const STAGE = /^\.wirewatch-backup-[0-9a-f]{16}$/;
const LOCK = 'lock';
const TRIES = 5;

export interface Stage {
  readonly path: string;
  /** Removes it with what is in it. */
  remove(): void;
}

/** @throws the file system's error where the folder cannot be written to */
export function makeStage(folder: string): Stage {
  removeLeftStages(folder);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const path = join(folder, `.wirewatch-backup-${randomBytes(8).toString('hex')}`);
    mkdirSync(path, { mode: 0o700 });
    const release = tryLock(path);
    // Somebody who cleaned up may have come between the two.
    if (release === null) continue;
    if (!existsSync(join(path, LOCK))) {
      release();
      continue;
    }
    return {
      path,
      remove() {
        release();
        rmSync(path, { recursive: true, force: true });
      },
    };
  }
  throw new Error(`${folder}: others keep removing what is begun there`);
}

function tryLock(path: string): (() => void) | null {
  try {
    return takeLock(join(path, LOCK));
  } catch (error) {
    // Of a folder that is gone there are many words.
    if (!existsSync(join(path, LOCK))) return null;
    throw error;
  }
}

/** Removes what killed processes left; only folders named by us, and none that somebody is at work in. */
export function removeLeftStages(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!STAGE.test(name) || !lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) continue;
    try {
      const release = takeLock(join(path, LOCK));
      if (release === null) continue;
      release();
      rmSync(path, { recursive: true, force: true });
    } catch {
      // Another's, or gone meanwhile: it is in nobody's way.
    }
  }
}
