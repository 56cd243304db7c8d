/** Prepares `access.db` at a start: its spare copy, noted revocations, and the missing entries of the configuration. */
import { existsSync } from 'node:fs';
import { applyRevocations, prepareRevocations } from './auth/denials.ts';
import { openAccess } from './auth/open-access.ts';
import { preseed } from './auth/preseed.ts';
import { now } from './clock.ts';
import type { Config } from './config/load.ts';
import { readSecretFiles } from './config/preseed.ts';
import type { Logger } from './logger.ts';
import type { Database } from './store/database.ts';
import { isDiskFull } from './store/database-errors.ts';
import { dataFolder } from './store/folder.ts';
import type { InstallationKind } from './store/installation.ts';
import { readRole, roleOf } from './store/role.ts';

/**
 * @param onPrepared may open `access.db` once more: on a full disk nobody can, once the last has closed it
 * @returns why the spare copy took the place of `access.db`; null: it did not
 */
export function prepareAccess(
  { config, kind, log }: { config: Pick<Config, 'preseed' | 'copy'>; kind: InstallationKind; log: Logger },
  root: string,
  onPrepared = () => {},
): string | null {
  const configured = readSecretFiles(config.preseed);
  const folder = dataFolder(root);
  const isNew = !existsSync(folder.access) && !existsSync(folder.spare);
  let recovered: string | null = null;
  using access = openAccess(root, {
    create: true,
    kind,
    operation: { kind: 'start' },
    onRecovered: (reason) => {
      recovered = reason;
      log.error({ reason }, 'access.db could not be used: its spare copy took its place');
    },
    onSpareStale: (reason) => reportStaleSpare(log, reason),
  });
  // What a standby would change or add, the writer has, or will have; who was revoked here stays refused by that note.
  const isWriter = roleOf(readRole(folder), config.copy) === 'writer';
  unlessFull(log, 'room to note revoked keys while the disk is full', () => prepareRevocations(folder));
  if (isWriter)
    unlessFull(log, 'noted revocations, which are in force', () => applyRevocations(folder, access));
  if (isNew) log.info({ data: root }, `created a new installation in ${root}`);
  if (isWriter) createConfigured(access, configured, log);
  onPrepared();
  return recovered;
}

export function reportStaleSpare(log: Logger, reason: string): void {
  log.warn({ reason }, 'the spare copy of access.db could not be brought up to date: it was deleted');
}

function createConfigured(access: Database, configured: ReturnType<typeof readSecretFiles>, log: Logger) {
  const { seeds, readable_by_all } = configured;
  if (readable_by_all.length > 0)
    log.warn({ files: readable_by_all }, 'these secret files can be read by every user of this machine');
  const what = 'missing entries of the configuration';
  const preseeded = unlessFull(log, what, () => preseed(access, seeds, now()));
  if (preseeded === null) return;
  const { created, differences } = preseeded;
  const { accounts, subscriptions, keys } = created;
  if (accounts.length + subscriptions.length + keys.length > 0)
    log.info(created, 'created the entries of the configuration that were missing');
  if (differences.length > 0)
    log.warn({ differences }, 'existing entries differ from the configuration and were not changed');
}

/** A full disk must not keep clients from reading. @param unwritten what is not written then @returns null if the disk is full */
function unlessFull<Result>(log: Logger, unwritten: string, work: () => Result): Result | null {
  try {
    return work();
  } catch (err) {
    if (!isDiskFull(err)) throw err;
    log.error({ err, unwritten }, 'the disk is full: the start left out a write. Free space and restart');
    return null;
  }
}
