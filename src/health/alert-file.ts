/**
 * `alerts.json` in the data folder: the open alerts of the running appliance, for `wirewatch alert list`.
 *
 * A file, so that a damaged database or a full disk does not hide the alerts. It is padded and overwritten in place,
 * which needs no further disk space.
 */
import { constants, ftruncateSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrorCode } from '../refused.ts';
import { openFile } from '../store/folder.ts';
import { ALERTS, type AlertDocument } from './alert-texts.ts';

/** More than all alerts together need. */
const FILE_BYTES = 32 * 1024;
const READ_TRIES = 5;
const TRY_AGAIN_MS = 20;

/** @throws the file system's error */
export function writeAlertFile(path: string, alerts: readonly AlertDocument[]): void {
  const text = `${JSON.stringify({ alerts })}\n`;
  const content = Buffer.concat([
    Buffer.from(text),
    Buffer.alloc(Math.max(0, FILE_BYTES - Buffer.byteLength(text)), ' '),
  ]);
  // Windows has no O_NOFOLLOW.
  using file = openFile(path, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0));
  writeSync(file.fd, content, 0, content.length, 0);
  ftruncateSync(file.fd, content.length);
}

/** @returns null if the file does not exist or cannot be read */
export async function readAlertFile(path: string): Promise<AlertDocument[] | null> {
  for (let tries = 0; tries < READ_TRIES; tries += 1) {
    try {
      const { alerts }: { readonly alerts: AlertDocument[] } = JSON.parse(readFileSync(path, 'utf8'));
      // Another version may know other alerts.
      return alerts.every(({ name }) => Object.hasOwn(ALERTS, name)) ? alerts : null;
    } catch (error) {
      if (isErrorCode(error, 'ENOENT')) return null;
      // The appliance may have been writing it.
      await sleep(TRY_AGAIN_MS);
    }
  }
  return null;
}
