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
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
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
  const { root, detections, access, journal, lock, secret } = folder;
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    if (!statSync(root).isDirectory()) throw new Error('it is not a folder');
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK);
    for (const path of [detections, access, journal, lock])
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    if (existsSync(secret)) accessSync(secret, constants.R_OK);
  } catch (error) {
    const reason = reasonOf(error);
    throw new Refused(
      'configuration',
      `cannot use the data folder ${root}: ${reason}. Run this as the user whom it belongs to, give it to this one (chown -R), or name another with --data.`,
    );
  }
}

/**
 * What root makes in the folder of another user is given to that one, who could not open it otherwise. Call it after
 * work in the folder; for everybody else it does nothing.
 */
export function giveToOwner({ root }: DataFolder): void {
  if (process.getuid?.() !== 0 || !existsSync(root)) return;
  const { uid, gid } = statSync(root);
  if (uid === 0) return;
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    const path = join(root, entry.name);
    const isOurs = OWN_NAME.test(entry.name) && (entry.isFile() || entry.isDirectory());
    if (!isOurs || lstatSync(path).uid === uid) continue;
    lchownSync(path, uid, gid);
    if (!entry.isDirectory()) continue;
    for (const name of readdirSync(path)) lchownSync(join(path, name), uid, gid);
  }
}

/** The state and what restores leave; not the drop folder, photos or the configuration. */
const OWN_NAME =
  /^((detections\.db|access\.db|secret|journal|lock|alerts\.json)([.-].*)?|(replaced|incoming)-.*)$/;

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
function refuseLost({ root, secret, detections }: DataFolder): void {
  if (!existsSync(detections)) return;
  throw new Refused(
    'configuration',
    `the secret ${secret} is missing, and ${root} is in use: without it no cursor, access token or photo address that was given out is valid. Put back the file from a backup (tar -xf BACKUP secret). Where there is none: head -c ${SECRET_BYTES} /dev/urandom > ${secret}, and every client has to start again.`,
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
