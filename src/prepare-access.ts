/** Prepares `access.db` at a start: applies the rest of its log, and creates the missing entries of the configuration. */
import { existsSync } from 'node:fs';
import { preseed } from './auth/preseed.ts';
import { now } from './clock.ts';
import type { Config } from './config/load.ts';
import { type ReadSeeds, readSecretFiles } from './config/secret-file.ts';
import { openAccess, type Recovered } from './history/open-access.ts';
import type { Logger } from './log.ts';
import { applyRevocations } from './operations/access.ts';
import type { Database } from './store/database.ts';
import { isDiskFull } from './store/database-errors.ts';
import { dataFolder } from './store/folder.ts';
import type { InstallationKind } from './store/installation.ts';
import { prepareRevocations } from './store/revocations.ts';

export interface PrepareOptions {
  readonly config: Pick<Config, 'preseed'>;
  readonly kind: InstallationKind;
  readonly log: Logger;
}

export function prepareAccess({ config, kind, log }: PrepareOptions, root: string): void {
  // A demonstration has its own entries, and must not contain those of a real configuration.
  const configured = kind === 'appliance' ? readSecretFiles(config.preseed) : null;
  const folder = dataFolder(root);
  const isNew = !existsSync(folder.access) && !existsSync(folder.accessLog);
  using access = openAccess(root, {
    create: true,
    kind,
    operation: { kind: 'start' },
    compare: true,
    onRecovered: (recovered) => logRecovered(recovered, log),
  });
  unlessFull(log, () => {
    prepareRevocations(folder);
    applyRevocations(folder, access);
  });
  if (isNew) log.info({ data: root }, `created a new installation in ${root}`);
  if (configured !== null) createConfigured(access, configured, log);
}

function logRecovered(recovered: Recovered, log: Logger): void {
  switch (recovered.kind) {
    case 'rebuilt':
      log.warn({ reason: recovered.reason }, 'access.db was rebuilt from its log');
      break;
    case 'brought up':
      log.warn({ entries: recovered.entries }, 'access.db was older than its log and was brought up to date');
      break;
    case 'log damaged':
      log.error({ reason: recovered.reason }, 'the access log is damaged, but access.db is complete');
  }
}

function createConfigured(access: Database, { seeds, readable_by_all }: ReadSeeds, log: Logger): void {
  if (readable_by_all.length > 0)
    log.warn({ files: readable_by_all }, 'these secret files can be read by every user of this machine');
  const preseeded = unlessFull(log, () => preseed(access, seeds, now()));
  if (preseeded === null) return;
  const { created, differences, replaced } = preseeded;
  const { accounts, subscriptions, keys } = created;
  if (accounts.length + subscriptions.length + keys.length > 0)
    log.info(created, 'created the entries of the configuration that were missing');
  if (differences.length > 0)
    log.warn({ differences }, 'existing entries differ from the configuration and were not changed');
  for (const { id, place } of replaced) {
    const next = `wirewatch key revoke ${id}`;
    log.warn({ key_id: id, place, next }, 'a key still works although the configuration has replaced it');
  }
}

/** A full disk must not keep clients from reading. @returns null if the disk is full */
function unlessFull<Result>(log: Logger, work: () => Result): Result | null {
  try {
    return work();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    log.error(
      { err: error },
      'the disk is full: entries of the configuration that are missing were not created. Free space and restart',
    );
    return null;
  }
}
