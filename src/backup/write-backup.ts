/**
 * Writing a backup: one file that holds all that an installation cannot do without, taken beside a running appliance
 * as well as without one.
 *
 * The databases come first, each as of one moment, then the journal: so the journal always tells what a database does
 * not know yet, and never the other way round. Everything is made in a folder beside the target, checked there, and
 * appears under its name when it is whole and on disk.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isErrorCode, Refused, reasonOf } from '../refused.ts';
import { ACCESS_MIGRATIONS } from '../store/access-schema.ts';
import { type Database, openReader } from '../store/database.ts';
import { isDamage, isDiskFull, isForbidden } from '../store/database-errors.ts';
import { DETECTIONS_MIGRATIONS } from '../store/detections-schema.ts';
import { appearAs, type DataFolder, dataFolder, sha256Of, syncFile, syncFolder } from '../store/folder.ts';
import { refuseHalfRestored } from '../store/incoming.ts';
import { journalIdentity } from '../store/journal-lines.ts';
import { keepInPlace } from '../store/locks.ts';
import type { Migrations } from '../store/migrate.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { formatMs, type Now } from '../time.ts';
import { VERSION } from '../version.ts';
import {
  FORMAT,
  FORMAT_VERSION,
  MANIFEST,
  type Manifest,
  PARTS,
  type Part,
  type PartName,
} from './backup-file.ts';
import { copyOnThread } from './copy-thread.ts';
import { freeBytes, inMib } from './room.ts';
import { makeStage } from './stage.ts';
import { packTar } from './tar-file.ts';

export interface BackupOptions {
  readonly data: string;
  /** The file to write. */
  readonly target: string;
  /** The drop folder. */
  readonly drop: string;
  /** Whether a file that is there is replaced. */
  readonly replace: boolean;
  readonly now: Now;
  /** How much this user can still write on the disk of a folder. */
  readonly freeBytes?: (folder: string) => number;
  /** Told what is being done, in bytes. */
  readonly onProgress: (what: string, done: number, total: number) => void;
}

export interface WrittenBackup {
  readonly path: string;
  readonly bytes: number;
  readonly manifest: Manifest;
}

/** What besides the copies has to fit: the manifest, the tar's own blocks. */
const SPARE_BYTES = 1024 * 1024;
/** Far more than a line of the journal has. */
const LINE_BYTES_MAX = 1024 * 1024;
/** What ingest is left on its own disk: it must not stand still for the sake of a backup. */
const SPARE_OF_INGEST_BYTES = 512 * 1024 * 1024;

const COUNTS_OF_DETECTIONS = `
  SELECT (SELECT count(*) FROM detection) AS detections, (SELECT count(*) FROM stream_row) AS stream_rows,
    (SELECT count(*) FROM ingest_file) AS files`;
const COUNTS_OF_ACCESS = `
  SELECT (SELECT count(*) FROM account) AS accounts, (SELECT count(*) FROM api_key) AS keys`;

/**
 * @throws Refused `failed` when there is no room, the target exists or cannot be written, or what was copied is
 *   damaged; `configuration` when there is no installation to back up
 */
export async function writeBackup(options: BackupOptions): Promise<WrittenBackup> {
  const { target } = options;
  const folder = dataFolder(options.data);
  const release = keepInPlace(folder, false);
  try {
    requireInstallation(folder);
    requireOutside(folder, options);
    requireFreeName(target, options.replace);
    requireRoom(folder, dirname(target), (options.freeBytes ?? freeBytes)(dirname(target)));
    const stage = makeStage(dirname(target));
    try {
      const manifest = await fillStage(folder, stage.path, options);
      const names = [MANIFEST, ...PARTS.filter((name) => manifest.parts[name] !== undefined)];
      const total = partBytes(manifest);
      const packed = join(stage.path, 'packed.tar');
      const bytes = await packTar(stage.path, names, packed, (done) =>
        options.onProgress('writing', Math.min(done, total), total),
      );
      if (options.replace) {
        renameSync(packed, target);
        syncFolder(dirname(target));
      } else if (!appearAs(target, packed)) throw nameTaken(target);
      return { path: target, bytes, manifest };
    } finally {
      stage.remove();
    }
  } catch (error) {
    throw explained(error, target, folder);
  } finally {
    release();
  }
}

function partBytes({ parts }: Manifest): number {
  return Object.values(parts).reduce((sum, part) => sum + part.bytes, 0);
}

async function fillStage(folder: DataFolder, stage: string, options: BackupOptions): Promise<Manifest> {
  const createdAt = options.now();
  const detections = join(stage, 'detections.db');
  const access = join(stage, 'access.db');
  for (const [from, to] of [
    [folder.detections, detections],
    [folder.access, access],
  ] as const)
    await copyOnThread({ from, to }, (done, total) =>
      options.onProgress(`copying ${basename(from)}`, done, total),
    );
  const journal = copyJournal(folder.journal, join(stage, 'journal'));
  copySecret(folder.secret, join(stage, 'secret'));
  const ofDetections = inspect(detections, DETECTIONS_MIGRATIONS, (db) =>
    db.prepare<[], { detections: number; stream_rows: number; files: number }>(COUNTS_OF_DETECTIONS).get(),
  );
  const ofAccess = inspect(access, ACCESS_MIGRATIONS, (db) =>
    db.prepare<[], { accounts: number; keys: number }>(COUNTS_OF_ACCESS).get(),
  );
  const parts: Partial<Record<PartName, Part>> = {};
  for (const name of PARTS) {
    const path = join(stage, name);
    if (existsSync(path)) parts[name] = await hashPart(path, options);
  }
  const manifest: Manifest = {
    format: FORMAT,
    version: FORMAT_VERSION,
    created_at: formatMs(createdAt),
    program: VERSION,
    schemas: { detections: ofDetections.schema, access: ofAccess.schema },
    journal,
    counts: {
      detections: ofDetections.counts?.detections ?? 0,
      stream_rows: ofDetections.counts?.stream_rows ?? 0,
      files: ofDetections.counts?.files ?? 0,
      accounts: ofAccess.counts?.accounts ?? 0,
      keys: ofAccess.counts?.keys ?? 0,
    },
    parts,
  };
  writeFileSync(join(stage, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
  return manifest;
}

/** Up to its last whole line: another may be being written. */
function copyJournal(from: string, to: string): Manifest['journal'] {
  if (!existsSync(from)) return null;
  const source = openSync(from, 'r');
  try {
    const { size } = fstatSync(source);
    const copy = openSync(to, 'wx', 0o600);
    try {
      const buffer = Buffer.alloc(LINE_BYTES_MAX);
      let wholeBytes = 0;
      for (let at = 0; at < size; ) {
        const read = readSync(source, buffer, 0, Math.min(buffer.length, size - at), at);
        if (read === 0) break;
        const lastBreak = buffer.lastIndexOf(0x0a, read - 1);
        // A line that is longer than the buffer is none of ours, and ends the copy.
        if (lastBreak < 0) break;
        const bytes = lastBreak + 1;
        for (let written = 0; written < bytes; ) written += writeSync(copy, buffer, written, bytes - written);
        at += bytes;
        wholeBytes = at;
      }
      return { id: journalIdentity(from), bytes: wholeBytes };
    } finally {
      closeSync(copy);
    }
  } finally {
    closeSync(source);
  }
}

function copySecret(from: string, to: string): void {
  const file = openSync(from, 'r');
  try {
    const secret = Buffer.alloc(SECRET_BYTES + 1);
    const bytes = readSync(file, secret, 0, secret.length, 0);
    if (bytes !== SECRET_BYTES) {
      throw new Refused(
        'configuration',
        `the secret ${from} has not ${SECRET_BYTES} bytes: a backup with it would be good for nothing. Put back the right one from an older backup.`,
      );
    }
    writeFileSync(to, secret.subarray(0, SECRET_BYTES), { flag: 'wx', mode: 0o600 });
  } finally {
    closeSync(file);
  }
}

function inspect<Counts>(
  path: string,
  migrations: Migrations,
  read: (db: Database) => Counts,
): { schema: number; counts: Counts } {
  const db = openReader(path);
  try {
    const problem = db.pragma('integrity_check(1)', { simple: true });
    if (problem !== 'ok') throw damaged(path, String(problem));
    const schema = Number(db.pragma('user_version', { simple: true }));
    if (schema > migrations.steps.length || schema === 0) {
      throw new Refused(
        'configuration',
        `${basename(path)} has schema ${schema}, this program knows ${migrations.steps.length}. Use the program that the appliance runs on.`,
      );
    }
    return { schema, counts: read(db) };
  } finally {
    db.close();
  }
}

async function hashPart(path: string, { onProgress }: BackupOptions): Promise<Part> {
  const { size } = statSync(path);
  let bytes = 0;
  const sha256 = await sha256Of(path, (read) => {
    bytes += read;
    onProgress(`checking ${basename(path)}`, bytes, size);
  });
  syncFile(path);
  return { bytes, sha256 };
}

function requireInstallation(folder: DataFolder): void {
  refuseHalfRestored(folder);
  const { root, detections, access, secret } = folder;
  const missing = [access, detections, secret].find((path) => !existsSync(path));
  if (missing === undefined) return;
  throw new Refused(
    'configuration',
    existsSync(access) && !existsSync(detections) && !existsSync(secret)
      ? `there is nothing to back up in ${root} yet: no appliance was ever started on it. Start one with: wirewatch serve`
      : `there is no installation in ${root} that could be backed up: ${missing} is missing. Name the data folder with --data.`,
  );
}

/** Not over a part of the installation, and not where ingest takes every file away. */
function requireOutside({ root }: DataFolder, { target, drop }: BackupOptions): void {
  const at = realFolder(dirname(target));
  const [own, dropped] = [realFolder(root), realFolder(drop)];
  const isInDrop = at === dropped;
  if (at !== own && !isInDrop) return;
  throw new Refused(
    'failed',
    `${target} lies in the ${isInDrop ? 'drop' : 'data'} folder, where ${isInDrop ? 'ingest takes every file away' : 'the installation itself lies'}. Name a file elsewhere, best on another disk.`,
  );
}

function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function requireFreeName(target: string, replace: boolean): void {
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isFile()) {
    throw new Refused(
      'failed',
      `${target} is not a file. Name the file that the backup is to be, such as ${join(target, 'wirewatch.tar')}.`,
    );
  }
  if (!replace) throw nameTaken(target);
}

function nameTaken(target: string): Refused {
  return new Refused('failed', `${target} is there already. Name another file, or replace it with --force.`);
}

/** Once as copies and once as the tar: so much is needed for a while, half of it stays. */
function requireRoom(folder: DataFolder, where: string, free: number): void {
  const paths = [folder.detections, folder.access, folder.journal];
  const isSameDisk = statSync(where).dev === statSync(folder.root).dev;
  const spare = isSameDisk ? SPARE_OF_INGEST_BYTES : SPARE_BYTES;
  const needed = 2 * paths.reduce((sum, path) => sum + sizeWithLog(path), 0) + spare;
  if (free >= needed) return;
  throw new Refused(
    'failed',
    `there is no room for a backup in ${where}: about ${inMib(needed)} MiB are needed while it is made, ${inMib(free)} are free. Make room, or name a file on another disk.`,
  );
}

function sizeWithLog(path: string): number {
  const size = (one: string) => statSync(one, { throwIfNoEntry: false })?.size ?? 0;
  return size(path) + size(`${path}-wal`);
}

function damaged(path: string, problem: string): Refused {
  return new Refused(
    'failed',
    `${basename(path)} is damaged, so no backup was written (${problem.replace(/\s+/g, ' ')}). Keep the backups that you have, and see: wirewatch verify`,
  );
}

function explained(error: unknown, target: string, { root }: DataFolder): unknown {
  if (error instanceof Refused) return error;
  const reason = reasonOf(error);
  if (isDiskFull(error)) {
    return new Refused(
      'failed',
      `the disk of ${dirname(target)} is full; nothing was left there. Make room, or name a file on another disk.`,
      { cause: error },
    );
  }
  if (isDamage(error)) return damaged('the database', reason);
  const path = error instanceof Error && 'path' in error ? String(error.path) : '';
  if (isForbidden(error) && path.startsWith(root + sep) && !target.startsWith(root + sep))
    return new Refused('failed', `${reason}. Run it as the user of the appliance.`, { cause: error });
  if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS')) {
    return new Refused(
      'failed',
      `cannot write ${target}: ${reason}. Name a file in a folder that is there and that this user may write to.`,
      { cause: error },
    );
  }
  return error;
}
