/** The secret: 32 random bytes. The keys for cursors, tokens and photo addresses are derived from it. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { counted } from '../counted.ts';
import { misconfigured } from '../refused.ts';
import { createOnce, type DataFolder } from './folder.ts';

export const SECRET_BYTES = 32;

/** Creates the secret on first use. @throws Refused `configuration` as {@link findSecret} */
export function readSecret(folder: DataFolder): Buffer {
  const found = findSecret(folder);
  if (found !== null) return found;
  createOnce(folder.secret, randomBytes(SECRET_BYTES));
  return readFileSync(folder.secret);
}

/** @returns null if the first start creates it. @throws Refused `configuration` if it is lost or damaged */
export function findSecret(folder: DataFolder): Buffer | null {
  if (!existsSync(folder.secret)) {
    refuseLost(folder);
    return null;
  }
  const secret = readFileSync(folder.secret);
  if (secret.length !== SECRET_BYTES)
    throw misconfigured(
      `the secret ${folder.secret} has ${counted(secret.length, 'byte')} instead of ${SECRET_BYTES}. Restore the file from a backup: without it, all existing cursors are invalid.`,
    );
  return secret;
}

/** With a new secret, every cursor that clients have would be a 400. */
function refuseLost({ root, secret, detections, log }: DataFolder): void {
  if (!existsSync(detections) && !existsSync(log)) return;
  // Another process has created it meanwhile.
  if (existsSync(secret)) return;
  throw misconfigured(
    `the secret ${secret} is missing, although ${root} already holds data. Without it, all existing cursors, access tokens and photo addresses are invalid. Copy the file from a backup: it is "secret" in the backup folder. Without a backup, run this as the user that Wirewatch runs as: (umask 077; head -c ${SECRET_BYTES} /dev/urandom > ${secret}). Every client must then start again.`,
  );
}
