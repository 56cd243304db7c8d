/**
 * `alerts.json` in the data folder: the open alerts of the running appliance, for `wirewatch alert list`.
 *
 * A file, so that a damaged database or a full disk does not hide the alerts. It is padded and overwritten in place,
 * which needs no further disk space.
 */
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrorCode } from '../refused.ts';
import { ALERTS, type AlertDocument, type AlertName } from './alert-texts.ts';

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
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
  try {
    writeSync(file, content, 0, content.length, 0);
    ftruncateSync(file, content.length);
  } finally {
    closeSync(file);
  }
}

/** @returns null if the file does not exist or cannot be read */
export async function readAlertFile(path: string): Promise<AlertDocument[] | null> {
  for (let tries = 0; tries < READ_TRIES; tries += 1) {
    try {
      return parse(JSON.parse(readFileSync(path, 'utf8')));
    } catch (error) {
      if (isErrorCode(error, 'ENOENT')) return null;
      // The appliance may have been writing it.
      await sleep(TRY_AGAIN_MS);
    }
  }
  return null;
}

function parse(value: unknown): AlertDocument[] {
  const alerts: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'alerts') : null;
  if (!Array.isArray(alerts)) throw new Error('the file does not contain a list of alerts');
  return alerts.map((alert: Record<string, unknown>) => {
    const { name, page_worthy, since, detail, what_to_do } = alert;
    if (!isAlertName(name)) throw new Error('the file contains an alert that this version does not know');
    return {
      name,
      page_worthy: page_worthy === true,
      since: String(since),
      detail: String(detail),
      what_to_do: String(what_to_do),
    };
  });
}

function isAlertName(name: unknown): name is AlertName {
  return typeof name === 'string' && Object.hasOwn(ALERTS, name);
}
