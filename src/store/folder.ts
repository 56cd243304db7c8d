/**
 * The data folder: what lies where, the secret, and the lock that only one appliance holds.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { Refused, reasonOf } from '../refused.ts';

export interface DataFolder {
  readonly root: string;
  /** Detections, stream, windows, ingest: written by the appliance's worker alone. */
  readonly detections: string;
  /** Accounts, subscriptions, keys, requests to the appliance: written by commands too. */
  readonly access: string;
  readonly journal: string;
  readonly secret: string;
  readonly lock: string;
  /** The alerts that the running appliance has open. */
  readonly alerts: string;
}

export function dataFolder(root: string): DataFolder {
  return {
    root,
    detections: join(root, 'detections.db'),
    access: join(root, 'access.db'),
    journal: join(root, 'journal'),
    secret: join(root, 'secret'),
    lock: join(root, 'lock'),
    alerts: join(root, 'alerts.json'),
  };
}

/**
 * Creates the folder (0700) where it is missing; it may be a link to one, as systemd makes it for a dynamic user.
 *
 * @throws Refused `configuration` when this user cannot write to it, or to what lies in it
 */
export function ensureFolder(folder: DataFolder): void {
  const { root, detections, access, journal, lock } = folder;
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    if (!statSync(root).isDirectory()) throw new Error('it is not a folder');
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK);
    for (const path of [detections, access, journal, lock])
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    const reason = reasonOf(error);
    throw new Refused(
      'configuration',
      `cannot use the data folder ${root}: ${reason}. Run this as the user whom it belongs to, give it to this one (chown -R), or name another with --data.`,
    );
  }
}

export const SECRET_BYTES = 32;

/**
 * The secret from which the keys of cursors, tokens and photo addresses are derived; made on first use.
 *
 * It appears under its name only when it is whole and on disk, and an existing one is never replaced: a second
 * process that starts at the same moment reads what the first one made.
 */
export function readSecret(folder: DataFolder): Buffer {
  if (!existsSync(folder.secret)) createSecret(folder);
  const secret = readFileSync(folder.secret);
  if (secret.length !== SECRET_BYTES) {
    throw new Refused(
      'configuration',
      `the secret ${folder.secret} has ${secret.length} bytes, not ${SECRET_BYTES}. Put back the one from a backup: without it no cursor that was given out is valid.`,
    );
  }
  return secret;
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
  try {
    linkSync(draft, folder.secret);
  } catch (error) {
    if (!isErrorCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(folder.root);
}

/** Makes the names in a folder durable: a rename is on disk only when its folder is. */
export function syncFolder(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

export function isErrorCode(error: unknown, ...codes: string[]): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
  );
}
