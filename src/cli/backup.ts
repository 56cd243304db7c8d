/** `wirewatch backup`: brings a copy up to date once, whether or not the appliance is running. */
import { existsSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import path from 'node:path';
import { findAccess } from '../auth/spare-copy.ts';
import type { Config } from '../config/load.ts';
import type { OnProgress } from '../copy/copy-contents.ts';
import { openTried } from '../copy/open-place.ts';
import { folderAround, isBucket, type Place, Unreachable } from '../copy/place.ts';
import { createShipper } from '../copy/ship.ts';
import { counted } from '../counted.ts';
import { placeOf } from '../log/log-reader.ts';
import { findTail } from '../log/torn-end.ts';
import { anyText } from '../operations/member.ts';
import { failed, misconfigured, misused, reasonOf, unlessError } from '../refused.ts';
import { pasted } from '../setup/shell.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { dataFolder } from '../store/folder.ts';
import { keepInPlace } from '../store/locks.ts';
import { isLogError, LogDamage } from '../store/log-errors.ts';
import { readLogMarkOf } from '../store/log-mark.ts';
import { requireOwner } from '../store/owner.ts';
import { joined } from '../text-layout.ts';
import { defineCommand } from './command.ts';
import { configOf, installationOptions, requireInstallation } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { showProgress } from './output.ts';

export const register = defineCommand({
  members: { dest: anyText('a folder, or s3://bucket/prefix (default: the setting [copy] to)') },
  operands: ['dest'],
  options: [DROP_OPTION],
  examples: ['backup', 'backup /backups/wirewatch', 'backup s3://backups/wirewatch --json'],
  async run({ dest }, self) {
    lowerPriority();
    const config = configOf(self);
    const given = dest ?? config.copy.to;
    if (given === '')
      throw misused(
        'there is no place for the copy. Name one (wirewatch backup FOLDER), or set [copy] to in the configuration.',
      );
    const to = isBucket(given) ? given : path.resolve(given);
    const backedUp = await backUp(to, config, showProgress, { mayBeginAnew: dest !== undefined });
    const text = textOf(to, backedUp.written, installationOptions(self, config));
    return { value: { path: to, ...backedUp }, text };
  },
});

/**
 * @param to a folder, absolute, or `s3://bucket/prefix`
 * @param options `mayBeginAnew`: also where a copy was kept and none is, which looks like a share that is not mounted
 * @returns the bytes that were written, the number of the last entry of the log, and of the last change of access.db
 * @throws Refused `failed` if the place cannot be written, or the installation is damaged, or the copy is missing, and
 *   then what is there stays as valid as it was; `configuration` if there is no installation to copy
 */
export async function backUp(
  to: string,
  config: Pick<Config, 'copy' | 'dataFolder' | 'ingest'>,
  onProgress: OnProgress,
  { mayBeginAnew }: { readonly mayBeginAnew: boolean },
) {
  const folder = dataFolder(config.dataFolder);
  requireOwner(folder);
  using held = new DisposableStack();
  held.defer(keepInPlace(folder));
  refuseHalfRestored(folder);
  requireInstallation(folder);
  if (!existsSync(folder.secret))
    throw misconfigured(
      `${folder.root} cannot be backed up: ${folder.secret} is missing. The first start makes it: wirewatch serve`,
    );
  const around = folderAround(to, { data: folder.root, drop: config.ingest.drop });
  if (around !== null)
    throw failed(`${to} is part of the ${around} folder. Name another place, preferably on another disk.`);
  try {
    const place = await openTried(to, config.copy);
    let written = 0;
    const create: Place['create'] = async (name, content) => {
      const isCreated = await place.create(name, content);
      if (isCreated) written += content.length;
      onProgress('writing the copy', written, 0);
      return isCreated;
    };
    const access = findAccess(folder);
    const applied = readLogMarkOf(folder.detections);
    // The last entry that a database has applied; the last one of the log if the database is not reliable.
    const isKnown = applied !== null && placeOf(folder.log, applied) === 'known';
    const end = isKnown ? applied : findTail(folder.log).last;
    await createShipper({ ...place, create }, folder, { mayBeginAnew }).ship(access, end);
    const access_changes = access.kind === 'sound' ? access.state.change : 0;
    return { written, entries: end?.entry ?? 0, access_changes };
  } catch (error) {
    if (error instanceof LogDamage)
      throw failed(`the log is damaged: ${error.message}. To find out what is wrong: wirewatch verify`, {
        cause: error,
      });
    if (error instanceof Unreachable || isLogError(error))
      throw failed(`cannot write the copy ${to}: ${reasonOf(error, to)}`, { cause: error });
    throw error;
  }
}

/** Lowers the priority of this process: a running Wirewatch comes first. */
export function lowerPriority(): void {
  // Where that is not permitted, it stays as it is.
  unlessError(undefined, () => setPriority(constants.priority.PRIORITY_LOW));
}

/** @param target for verify and restore */
function textOf(target: string, written: number, installation: string): string {
  return joined('\n', [
    `${target} is up to date. ${counted(written, 'byte')} written.`,
    '',
    'The copy contains the secret of the installation: protect it like the data folder. It does not contain the drop folder and its archive, the photos, or the configuration file: copy those yourself.',
    '',
    `Check it:                    wirewatch verify ${pasted(target)}`,
    `Restore it on this machine:  wirewatch restore ${pasted(target)} --replace${installation}`,
    '                             (stop Wirewatch first; the existing files are moved aside, not deleted)',
    'Restore it on another one:   make the place available there, then run: wirewatch restore SRC',
  ]);
}
