/**
 * Opens `access.db` for writing: the truth for accounts, subscriptions and keys, written by one process at a time. Every
 * transaction writes its entry of the audit trail, and then the spare copy.
 *
 * | state | action where the caller may recover it, see {@link OpenAccessOptions} |
 * |---|---|
 * | it is sound | none |
 * | it is damaged or missing, or older than the spare copy | the spare copy takes its place; a damaged file is kept aside |
 * | both are damaged | refused; nothing is changed |
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { now } from '../clock.ts';
import { failed, misconfigured, Refused, reasonOf } from '../refused.ts';
import { ACCESS_SCHEMA } from '../store/access-schema.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { type Database, openDatabase, prepared, removeBeside, writeThrough } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { type DataFolder, dataFolder, ensureFolder, noInstallation, writeWhole } from '../store/folder.ts';
import { ensureInstallation, type InstallationKind, installationKind } from '../store/installation.ts';
import type { Doing } from './actor.ts';
import { auditedState, writeEntry } from './audit.ts';
import { findAccess, readAccessState, refreshSpare } from './spare-copy.ts';

export interface OpenAccessOptions {
  readonly operation: Doing;
  /** Default: every kind is accepted, and a new folder becomes an appliance's. */
  readonly kind?: InstallationKind;
  readonly create?: boolean;
  /** Given by who may put the spare copy in place: a start, or the holder of the lock. */
  readonly onRecovered?: (reason: string) => void;
  /** Called when the spare copy could not be brought up to date, with what the disk said; the change itself is durable. */
  readonly onSpareStale?: (reason: string) => void;
}

const UPDATE_CHANGE = 'UPDATE change SET number = number + 1';

/** Opens `access.db`; the caller closes it. @throws Refused `configuration`, or `failed` if the disk is full */
export function openAccess(root: string, options: OpenAccessOptions): Database {
  const folder = dataFolder(root);
  refuseHalfRestored(folder);
  if (options.create === true) ensureFolder(folder);
  else if (!existsSync(folder.access) && !existsSync(folder.spare)) throw noInstallation(root);
  const db = explained(folder, () => open(folder, options));
  return prepared(db, () => {
    if (options.kind !== undefined) ensureInstallation(db, options.kind);
    else if (installationKind(db) === null) ensureInstallation(db, 'appliance');
  });
}

/** Has the changes of a connection noted in the audit trail and in the spare copy. */
export function auditChanges(db: Database, folder: DataFolder, options: OpenAccessOptions): void {
  const { operation, onSpareStale } = options;
  const totalChanges = db.prepare<[], number>('SELECT total_changes()').pluck();
  writeThrough(db, (work) => {
    let isChanged = false;
    const result = db
      .transaction(() => {
        const before = auditedState(db);
        const changes = totalChanges.get();
        const made = work();
        writeEntry(db, before, operation, now());
        isChanged = totalChanges.get() !== changes;
        if (isChanged) db.prepare(UPDATE_CHANGE).run();
        return made;
      })
      .immediate();
    if (isChanged) updateSpare(db, folder, onSpareStale);
    return result;
  });
}

function open(folder: DataFolder, options: OpenAccessOptions): Database {
  const { onRecovered } = options;
  if (onRecovered === undefined && !existsSync(folder.access) && existsSync(folder.spare))
    throw damaged(folder, 'it is missing');
  const isKept = onRecovered === undefined || recover(folder, onRecovered);
  const db = openDatabase(folder.access, 'write', ACCESS_SCHEMA);
  // A crash between a change and its spare copy, a full disk or damage has left it behind. A new file has nothing to keep.
  if (!isKept && readAccessState(db) !== null) updateSpare(db, folder, options.onSpareStale);
  auditChanges(db, folder, options);
  return db;
}

/** Never stops a change: a revocation on a full disk above all. */
function updateSpare(db: Database, folder: DataFolder, onStale: OpenAccessOptions['onSpareStale']): void {
  try {
    refreshSpare(db, folder);
  } catch (error) {
    onStale?.(reasonOf(error));
  }
}

/** @returns whether the spare copy has the state of the file then; @throws Refused if both are damaged */
function recover(folder: DataFolder, onRecovered: (reason: string) => void): boolean {
  const { access, verified } = folder;
  const found = findAccess(folder);
  if (found.kind === 'damaged') throw damaged(folder, found.reason);
  if (found.kind === 'missing' || found.spared === undefined) return found.isKept;
  // What is left of the file may be of use to somebody; its write-ahead log must not join the copy.
  if (existsSync(access)) renameSync(access, `${access}-damaged`);
  removeBeside(access);
  writeWhole(access, found.content);
  // What was found in the damaged file is said of it alone.
  rmSync(verified, { force: true });
  onRecovered(found.spared);
  return found.isKept;
}

const damaged = ({ root, access }: DataFolder, reason: string, options?: ErrorOptions): Refused =>
  misconfigured(
    `${access} cannot be used: ${reason}. A start puts its spare copy in place, if that is sound: restart Wirewatch. Otherwise restore a backup: wirewatch restore BACKUP --replace --data ${root}`,
    options,
  );

function explained<Result>(folder: DataFolder, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refused) throw error;
    const cause = { cause: error };
    const what = `cannot open ${folder.access}`;
    if (isDiskFull(error)) throw failed(`${what}: the disk is full. Free space and try again.`, cause);
    if (isDamage(error)) throw damaged(folder, 'it is damaged or not a database', cause);
    const advice = 'Check that this user can read and write the data folder.';
    throw misconfigured(`${what}: ${reasonOf(error)}. ${advice}`, cause);
  }
}
