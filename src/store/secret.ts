/** The secret: 32 random bytes from which all that is signed gets its keys. */
import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
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
      `the secret ${folder.secret} has ${secret.length} bytes, not ${SECRET_BYTES}. Put back the one from a backup: without it no cursor that was given out is valid.`,
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
    `the secret ${secret} is missing, and ${root} is in use: without it no cursor, access token or photo address that was given out is valid. Put back the file from a backup (tar -xf BACKUP secret). Where there is none, as the user of the appliance: (umask 077; head -c ${SECRET_BYTES} /dev/urandom > ${secret}), and every client has to start again.`,
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
