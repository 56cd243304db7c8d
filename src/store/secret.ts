/** The secret: 32 random bytes. The keys for cursors, tokens and photo addresses are derived from it. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { counted } from '../counted.ts';
import { misconfigured, unlessCode } from '../refused.ts';
import { createOnce, type DataFolder } from './folder.ts';

export const SECRET_BYTES = 32;

/** Creates the secret on first use. @throws Refused `configuration` as {@link findSecret} */
export function readSecret(folder: DataFolder): Buffer {
  const found = findSecret(folder);
  if (found !== null) return found;
  createOnce(folder.secret, randomBytes(SECRET_BYTES));
  return readFileSync(folder.secret);
}

/** @returns null: the first start makes it @throws Refused `configuration`: it is lost or damaged, and with it all cursors */
export function findSecret({ root, secret, detections, log }: DataFolder): Buffer | null {
  // Before the secret is read: another process may be creating an installation, and the secret comes first.
  const isInUse = existsSync(detections) || existsSync(log);
  const found = unlessCode(null, () => readFileSync(secret), 'ENOENT');
  if (found === null && isInUse)
    throw misconfigured(
      `the secret ${secret} is missing, although ${root} already holds data. Without it, all existing cursors, access tokens and photo addresses are invalid. Copy the file from a backup: it is "secret" in the backup folder. Without a backup, run this as the user that Wirewatch runs as: (umask 077; head -c ${SECRET_BYTES} /dev/urandom > ${secret}). Every client must then start again.`,
    );
  if (found !== null && found.length !== SECRET_BYTES)
    throw misconfigured(
      `the secret ${secret} has ${counted(found.length, 'byte')} instead of ${SECRET_BYTES}. Restore the file from a backup: without it, all existing cursors are invalid.`,
    );
  return found;
}
