/** The secret: 32 random bytes from which all that is signed gets its keys. */

import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { counted } from '../counted.ts';
import { Refused } from '../refused.ts';
import { appearAs, type DataFolder } from './folder.ts';

export const SECRET_BYTES = 32;

/**
 * The secret from which the keys of cursors, tokens and photo addresses are derived; made on first use.
 *
 * It appears under its name only when it is whole and on disk, and an existing one is never replaced: a second
 * process that starts at the same moment reads what the first one made.
 */
export function readSecret(folder: DataFolder): Buffer {
  if (!existsSync(folder.secret)) {
    refuseLost(folder);
    createSecret(folder);
  }
  const secret = readFileSync(folder.secret);
  if (secret.length !== SECRET_BYTES) {
    throw new Refused(
      'configuration',
      `the secret ${folder.secret} has ${counted(secret.length, 'byte')} instead of ${SECRET_BYTES}. Restore the file from a backup: without it, all existing cursors are invalid.`,
    );
  }
  return secret;
}

/** A new one beside a database in use would make every cursor that was given out a 400. */
function refuseLost({ root, secret, detections, log }: DataFolder): void {
  if (!existsSync(detections) && !existsSync(log)) return;
  // Made meanwhile, by the one who began to use it.
  if (existsSync(secret)) return;
  throw new Refused(
    'configuration',
    `the secret ${secret} is missing, although ${root} already holds data. Without it, all existing cursors, access tokens and photo addresses are invalid. Restore the file from a backup (tar -xf BACKUP secret). Without a backup, run this as the user that Wirewatch runs as: (umask 077; head -c ${SECRET_BYTES} /dev/urandom > ${secret}). Every client must then start again.`,
  );
}

function createSecret(folder: DataFolder): void {
  const draft = `${folder.secret}.${randomUUID()}`;
  const file = openSync(draft, 'wx', 0o600);
  try {
    writeSync(file, randomBytes(SECRET_BYTES));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  appearAs(folder.secret, draft);
}
